/** Puts together what episodes need in Node: in the trainer, in a thread, in a worker of a queue, without a model. */

import { runInScope } from '@drmas/engine/platform';
import type { RolloutContext, RolloutSettings } from '../../teams/rollout.js';
import { adaptAgents } from '../agents/adapt-agents.js';
import type { OpenGateway } from '../agents/gateway/open-gateway.js';

export interface RolloutProgram extends Pick<RolloutContext, 'warn' | 'watch' | 'listener'> {
  readonly gateway?: OpenGateway | undefined;
}

/** The context of episodes whose agents `speakers` answer: policies and endpoints by name. */
export function rolloutContext(
  settings: RolloutSettings,
  speakers: RolloutContext['policies'],
  { gateway, ...program }: RolloutProgram = {},
): RolloutContext {
  return {
    ...settings,
    ...program,
    policies: speakers,
    inScope: runInScope,
    adaptAgents: (episode, agents, counts) => adaptAgents(episode, agents, counts, gateway),
  };
}
