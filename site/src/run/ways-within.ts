import { ArgumentError } from '../../../src/core/errors.js';
import type { PlayWays, RolloutContext } from '../../../src/rollout/rollout-context.js';

const absent = (what: string) => (): never => {
  throw new ArgumentError(
    `${what}: a team in a browser tab calls its agents as functions, and has no other way to them`,
  );
};

/** The agents as functions alone: a tab has neither clients of other frameworks nor a gateway. */
export const waysWithin: RolloutContext['waysIn'] = (_episode, asks): PlayWays => {
  const [model, openai, gateway] = [absent('model'), absent('openai'), absent('gateway')];
  const agents = Object.entries(asks).map(
    ([name, ask]) => [name, Object.defineProperties(ask, { model: { get: model }, openai: { get: openai } })] as const,
  );
  const ways = { agents: Object.fromEntries(agents) };
  return Object.defineProperties(ways, { openai: { get: openai }, gateway: { get: gateway } }) as PlayWays;
};
