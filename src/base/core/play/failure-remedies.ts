import type { FailureReason } from '../episode.js';

const REMEDIES: Readonly<Record<FailureReason, string>> = {
  error: 'Fix the team first: the message shows where its code threw.',
  'invalid-output':
    "The model is too weak for the output that the team's code needs: use a longer warm start or demonstrations, a larger model, or a simpler schema. Code that catches the error decides itself what the episode earns.",
  reward: "Fix the team's reward first: the message shows what it returned, or where it threw.",
  overlong: 'Use a model with a longer context, or a smaller maxTokens.',
  timeout: 'Use a longer training.episodeTimeoutMs, or faster tools.',
  'too-many-turns': 'Make the team end earlier, or set a higher training.maxTurns.',
  backend: 'Check whether the server that samples is up.',
};

/** Advice for episodes that fail for this reason; a newer version's log may have reasons that are not known here. */
export const remedyOfFailure = (reason: string | undefined): string =>
  REMEDIES[reason as FailureReason] ?? 'Read the message first.';
