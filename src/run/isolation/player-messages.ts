/** What the program and a thread that plays episodes say to each other. All of it can be copied. */
import type { Generation } from '../../contract/sampling.js';
import type { Utterance } from '../../contract/text-backend.js';
import type { Episode } from '../../core/episode.js';
import type { AnsweredTurn, CallTime } from '../../core/play/play-observer.js';
import type { RecipeCode } from '../../recipe/recipe.js';
import type { PlayRequest, RemoteSettings, SpeakerRequest } from '../remote-speakers.js';

/** What a thread is given when it starts. */
export interface PlayerSettings extends RemoteSettings {
  readonly code: RecipeCode;
  /** Counts while the thread's event loop turns. */
  readonly beats: Int32Array; // [1], shared
}

export type ToPlayer =
  | {
      readonly type: 'play';
      readonly episode: number;
      readonly request: PlayRequest;
      /** Whether somebody wants to be told of every answered call. */
      readonly observed: boolean;
    }
  | { readonly type: 'answer'; readonly call: number; readonly value: Generation | Utterance }
  | { readonly type: 'refusal'; readonly call: number; readonly message: string };

export type FromPlayer =
  | {
      readonly type: 'call';
      readonly call: number;
      readonly policy: string;
      readonly request: SpeakerRequest;
    }
  /** Nobody waits for the answer any more. */
  | { readonly type: 'cancel'; readonly call: number }
  | { readonly type: 'answered'; readonly episode: number; readonly turn: AnsweredTurn; readonly time: CallTime }
  | { readonly type: 'over'; readonly episode: number; readonly played: Episode }
  /** An error that is no failure of an episode: the run cannot go on. */
  | { readonly type: 'broken'; readonly message: string }
  | { readonly type: 'warning'; readonly message: string };
