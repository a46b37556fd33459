import type { FailureReason } from '../episode.js';

const REMEDIES: Readonly<Record<FailureReason, string>> = {
  error: 'Fix the team first: the message shows where its code threw.',
  reward: "Fix the team's reward first: the message shows where it threw.",
  overlong: 'Use a model with a longer context, or a smaller maxTokens.',
  timeout: 'Use a longer training.episodeTimeoutMs, or faster tools.',
  'too-many-turns': 'Make the team end earlier, or set a higher training.maxTurns.',
  backend: 'Check whether the server that samples is up.',
};

/** Advice for episodes that fail for this reason; a newer version's log may have reasons that are not known here. */
export const remedyOfFailure = (reason: string | undefined): string =>
  REMEDIES[reason as FailureReason] ?? 'Read the message first.';
