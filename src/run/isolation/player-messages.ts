/** What the program and a thread that plays episodes say to each other. All of it can be copied. */
import type { GenerateRequest, Generation } from '../../contract/sampling.js';
import type { TextRequest, Utterance } from '../../contract/text-backend.js';
import type { Episode } from '../../core/episode.js';
import type { RecipeCode } from '../../recipe/recipe.js';
import type { EpisodeRequest, RolloutContext } from '../../rollout/rollout-context.js';

/** What a thread is given when it starts. */
export interface PlayerSettings
  extends Pick<RolloutContext, 'agents' | 'seed' | 'maxTurns' | 'timeoutMs' | 'maxOutcomeBytes'> {
  readonly code: RecipeCode;
  /** What a thread needs to know of each policy: how its texts are tokenised, or that an endpoint answers. */
  readonly policies: Readonly<Record<string, { readonly tokenizer: unknown; readonly context: number } | 'endpoint'>>;
  /** Counts while the thread's event loop turns. */
  readonly beats: Int32Array; // [1], shared
}

/** An episode to play, without what a thread has itself. */
export type PlayRequest = Pick<EpisodeRequest, 'task' | 'sample' | 'phase' | 'step' | 'sampling'>;

export type ToPlayer =
  | { readonly type: 'play'; readonly episode: number; readonly request: PlayRequest }
  | { readonly type: 'answer'; readonly call: number; readonly value: Generation | Utterance }
  | { readonly type: 'refusal'; readonly call: number; readonly message: string };

export type FromPlayer =
  | {
      readonly type: 'call';
      readonly call: number;
      readonly policy: string;
      readonly request: GenerateRequest | TextRequest;
    }
  /** Nobody waits for the answer any more. */
  | { readonly type: 'cancel'; readonly call: number }
  | { readonly type: 'over'; readonly episode: number; readonly played: Episode }
  /** An error that is no failure of an episode: the run cannot go on. */
  | { readonly type: 'broken'; readonly message: string }
  | { readonly type: 'warning'; readonly message: string };
