import { ArgumentError } from '../core/errors.js';
import type { GatewayConnection } from '../teams/ways-in.js';

function absent(): never {
  throw new ArgumentError('play uses the gateway, and the recipe has none: give it `gateway: {}`');
}

/** What `play` gets where there is no gateway: an error as soon as it is used. */
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
