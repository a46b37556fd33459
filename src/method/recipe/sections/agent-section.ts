/** The settings of an agent: its sampling and its costs. */
import { z } from 'zod';

const nonNegative = z.number().min(0);
const count = z.int().min(1);

const topP = z.number().gt(0).max(1);
const topK = z.int().min(0);

/** Sampling settings of evaluations. A missing key leaves the choice to the other sampling settings. */
export const evaluationSampling = z
  .strictObject({
    temperature: nonNegative.describe(
      'The sampling temperature in evaluations. 0, or less than 1e-30, takes the most probable token.',
    ),
    topP: topP.describe('The probability that the sampled tokens add up to in evaluations. 1 keeps all tokens.'),
    topK: topK.describe('The number of most probable tokens to sample from in evaluations. 0 keeps all tokens.'),
    maxTokens: count.describe('The most tokens of one response in evaluations.'),
  })
  .partial();

export const agentSchema = z.strictObject({
  system: z
    .string()
    .min(1)
    .optional()
    .describe("The system prompt in place of the team's. Demonstrations of a warm start begin with it too."),
  sampling: z
    .strictObject({
      temperature: nonNegative.describe(
        "The sampling temperature. 0, or less than 1e-30, takes the most probable token. Default: the setting of the team's " +
          'agent, else 1.',
      ),
      topP: topP.describe(
        'drmas samples from the smallest set of tokens whose probabilities add up to this. Default: the ' +
          "setting of the team's agent, else 1 (all tokens).",
      ),
      topK: topK.describe(
        "The number of most probable tokens to sample from. Default: the setting of the team's agent, else 0 " +
          '(all tokens).',
      ),
      maxTokens: count.describe("The most tokens of one response. Default: the setting of the team's agent, else 256."),
    })
    .describe("The sampling of the agent's responses."),
  evaluationSampling: evaluationSampling
    .optional()
    .describe('Sampling settings for this agent in evaluations. They override `evaluation.sampling` and `sampling`.'),
  promptLimit: z
    .strictObject({
      tokens: count.describe('The most tokens of a prompt.'),
      cut: z
        .enum(['left', 'middle'])
        .describe('Where a longer prompt loses tokens: `left` keeps its end, `middle` keeps a half at each end.'),
    })
    .optional()
    .describe(
      'Cuts prompts that are too long, as verl does; they train like others. Default: a prompt may fill the context, and ' +
        "an episode fails if one does not fit. An endpoint's prompts are not cut, because drmas does not know their tokens.",
    ),
  invalidPenalty: nonNegative.describe(
    'This is subtracted from the reward of a turn with an invalid output. Default: the setting of the ' +
      "team's agent, else 0.",
  ),
  callCost: nonNegative
    .default(0)
    .describe(
      "Each call of the agent by `play` lowers the team's reward of the episode by this. The success of the episode " +
        'does not change. A failed episode pays too. Events report the sum as the part `calls` of the reward.',
    ),
  tokenCost: nonNegative
    .default(0)
    .describe("Each token that the agent writes lowers the team's reward by this, as `callCost` does for calls."),
  rewardWeight: nonNegative
    .default(1)
    .describe(
      "The advantages of the agent's turns are multiplied by this after normalisation. With 0 no policy " +
        'learns from the rewards of these turns. AdamW and NIGT take out a factor that all gradients of a policy have.',
    ),
});
