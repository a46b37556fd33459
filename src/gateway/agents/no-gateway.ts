import { ArgumentError } from '@drmas/engine/errors';
import type { GatewayConnection } from '../../teams/index.js';

function absent(): never {
  throw new ArgumentError('play uses the gateway, and the recipe has none: give it `gateway: {}`');
}

/** The `gateway` of `play` if the recipe has none: it throws an error as soon as it is used. */
export const noGateway: GatewayConnection = {
  get url() {
    return absent();
  },
  get secret() {
    return absent();
  },
  get env() {
    return absent();
  },
  urlOf: absent,
  envOf: absent,
};
