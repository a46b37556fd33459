import type { RolloutContext, RolloutSettings } from '../../teams/rollout.js';
import type { GatewaySettings } from '../agents/gateway/gateway-settings.js';
import { openGateway } from '../agents/gateway/open-gateway.js';
import { type RolloutProgram, rolloutContext } from './rollouts.js';

export interface OpenRollouts {
  readonly context: RolloutContext;
  close(): Promise<void>;
}

interface OpenProgram extends Omit<RolloutProgram, 'gateway'> {
  readonly gateway: GatewaySettings | undefined;
  /** Receives once each setting that requests to the gateway contain and the recipe decides. */
  readonly onIgnored: (message: string) => void;
}

/** `rolloutContext`, with a gateway of its own. The caller closes it. @throws RecipeError when its port is taken */
export async function openRollouts(
  settings: RolloutSettings,
  speakers: RolloutContext['policies'],
  { gateway: wanted, onIgnored, ...program }: OpenProgram,
): Promise<OpenRollouts> {
  const { maxTurns } = settings;
  const gateway = wanted && (await openGateway(wanted, { maxTurns, warn: onIgnored }));
  return { context: rolloutContext(settings, speakers, { ...program, gateway }), close: async () => gateway?.close() };
}
