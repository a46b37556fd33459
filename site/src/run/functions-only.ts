import { ArgumentError } from '../../../src/base/errors.js';
import type { AdaptedAgents, RolloutContext } from '../../../src/teams/rollout.js';

const absent = (what: string) => (): never => {
  throw new ArgumentError(`${what}: a team in a browser tab can call its agents only as functions`);
};

/** The agents as functions alone: a tab has neither clients of other frameworks nor a gateway. */
export const functionsOnly: RolloutContext['adaptAgents'] = (_episode, asks): AdaptedAgents => {
  const [model, openai, gateway] = [absent('model'), absent('openai'), absent('gateway')];
  const agents = Object.entries(asks).map(
    ([name, ask]) => [name, Object.defineProperties(ask, { model: { get: model }, openai: { get: openai } })] as const,
  );
  const adapted = { agents: Object.fromEntries(agents) };
  return Object.defineProperties(adapted, { openai: { get: openai }, gateway: { get: gateway } }) as AdaptedAgents;
};
