/** The messages between the program and a thread that plays episodes. All fields can be copied. */

import type { Generation, Utterance } from '@drmas/engine/contract';
import type { AnsweredTurn, CallTime } from '@drmas/engine/host';
import type { Episode } from '@drmas/engine/nouns';
import type { RecipeCode } from '../../../method/recipe.js';
import type { PlayRequest, RemoteSettings, SpeakerRequest } from '../../../teams/rollout.js';

export interface PlayerSettings extends RemoteSettings {
  readonly code: RecipeCode;
  /** A counter that increases while the thread's event loop runs, and the thread's number. */
  readonly beats: Int32Array; // [2], shared
}

export type ToPlayer =
  | {
      readonly type: 'play';
      readonly episode: number;
      readonly request: PlayRequest;
      /** Whether a listener needs a message for every answered call. */
      readonly observed: boolean;
    }
  /** Nothing waits for the episode any more. The text says why. */
  | { readonly type: 'abort'; readonly episode: number; readonly why: string }
  | { readonly type: 'answer'; readonly call: number; readonly value: Generation | Utterance }
  | { readonly type: 'refusal'; readonly call: number; readonly message: string };

export type FromPlayer =
  | {
      readonly type: 'call';
      readonly call: number;
      readonly policy: string;
      readonly request: SpeakerRequest;
    }
  /** The call was aborted: its reply is not needed. */
  | { readonly type: 'cancel'; readonly call: number }
  | { readonly type: 'answered'; readonly episode: number; readonly turn: AnsweredTurn; readonly time: CallTime }
  | { readonly type: 'over'; readonly episode: number; readonly played: Episode }
  /** The episode was aborted, and its code has returned or had its time to return. */
  | { readonly type: 'aborted'; readonly episode: number }
  /** An error that is not a failure of an episode: the run cannot continue. */
  | { readonly type: 'broken'; readonly message: string }
  | { readonly type: 'warning'; readonly message: string };
