/** The gateway of a run, from its port to its end. */
import { messageOf, RecipeError } from '@drmas/engine/errors';
import { listen } from '@drmas/engine/platform';
import type { GatewayConnection } from '../../../teams/index.js';
import type { EpisodeInPlay } from '../../../teams/rollout.js';
import { beyondSampling, onceEach } from '../../dialects/request-fields.js';
import type { EpisodeCalls } from '../attribution.js';
import { Gateway } from './gateway.js';
import type { GatewaySettings } from './gateway-settings.js';

export interface OpenGateway {
  /** Opens the way to an episode's agents until the episode is over. */
  connect(episode: EpisodeInPlay, calls: EpisodeCalls): GatewayConnection;
  close(): Promise<void>;
}

interface GatewayRun {
  /** The most calls of one episode, whichever way they come. */
  readonly maxTurns: number;
  /** Receives settings of requests that the recipe decides instead: once for each setting of each agent. */
  readonly warn: (message: string) => void;
}

/** @throws RecipeError when the port cannot be opened */
export async function openGateway(settings: GatewaySettings, { maxTurns, warn }: GatewayRun): Promise<OpenGateway> {
  const { host, port, publicUrl, maxCalls = maxTurns } = settings;
  const gateway = new Gateway({
    limits: { maxCalls, maxTurns },
    onIgnored: onceEach((agent, wish) => {
      const isSampling = beyondSampling([wish]).length === 0;
      warn(
        `${agent}: requests set ${wish}, which is ignored${isSampling ? ': the recipe controls how the agent samples' : ''}`,
      );
    }),
  });
  const { url, close } = await listen(gateway, { host, port }).catch((error: unknown) => {
    throw new RecipeError(messageOf(error), 'gateway');
  });
  const reached = publicUrl?.replace(/\/+$/, '') ?? url;
  return { connect: (episode, calls) => gateway.connect(episode, calls, reached), close };
}
