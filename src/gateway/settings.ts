/** Door of `gateway`: the settings of a gateway. */
export { type GatewaySettings, gatewaySchema } from './agents/gateway/gateway-settings.js';
