/** The settings of an agent: how it samples, and what it costs. */
import { z } from 'zod';

const nonNegative = z.number().min(0);
const count = z.int().min(1);

const topP = z.number().gt(0).max(1);
const topK = z.int().min(0);

/** What evaluations sample otherwise; a key that is not given leaves what is decided elsewhere. */
export const evaluationSampling = z
  .strictObject({
    temperature: nonNegative.describe('The sampling temperature in evaluations; 0 takes the most probable token.'),
    topP: topP.describe('The share of the probability that is sampled from in evaluations; 1 is all tokens.'),
    topK: topK.describe('The number of most probable tokens that are sampled from in evaluations; 0 is all.'),
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
        "The sampling temperature; 0 takes the most probable token. Where the recipe is silent, the team's agent " +
          'decides, else it is 1.',
      ),
      topP: topP.describe(
        'The smallest set of tokens whose probabilities add up to this is sampled from. Where the recipe is ' +
          "silent, the team's agent decides, else it is 1: all tokens.",
      ),
      topK: topK.describe(
        "Only this many of the most probable tokens are sampled from. Where the recipe is silent, the team's " +
          'agent decides, else it is 0: all tokens.',
      ),
      maxTokens: count.describe(
        "The most tokens of one response. Where the recipe is silent, the team's agent decides, else it is 256.",
      ),
    })
    .describe("How the agent's responses are sampled."),
  evaluationSampling: evaluationSampling
    .optional()
    .describe('What evaluations sample otherwise of this agent, before `evaluation.sampling` and `sampling`.'),
  invalidPenalty: nonNegative.describe(
    'What is subtracted from the reward of a turn whose output is invalid. Where the recipe is silent, the ' +
      "team's agent decides, else it is 0.",
  ),
  callCost: nonNegative
    .default(0)
    .describe(
      "What every call of the agent takes off the team's reward of the episode. Success stays what it is; the sum is " +
        'reported as the part `calls` of the reward.',
    ),
  tokenCost: nonNegative
    .default(0)
    .describe("What every token that the agent writes takes off the team's reward, like `callCost`."),
  rewardWeight: nonNegative
    .default(1)
    .describe(
      "The advantages of the agent's turns are multiplied by this after normalisation; at 0 they teach nothing.",
    ),
});
