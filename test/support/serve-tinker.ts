/** The embedded engine behind a port of this machine, as `drmas serve --tinker` puts it there. */

import { listen, nodeHost } from '@drmas/engine/platform';
import { openTinker, type TinkerRequest } from '@drmas/tinker/server';

export interface TinkerServer {
  readonly url: string;
  /** The key that clients must send. */
  readonly apiKey: string;
  close(): Promise<void>;
}

export async function serveTinker(
  request: Pick<TinkerRequest, 'model' | 'store'> & Partial<TinkerRequest>,
): Promise<TinkerServer> {
  const defaults = { token: 'tml-test', most: 256, mostModels: 64, idleSeconds: 60 };
  const whole = { ...defaults, ...request };
  const opened = await openTinker(whole, nodeHost({ threads: 1 }));
  const { url, close } = await listen(opened, { host: '127.0.0.1', port: 0 });
  return {
    url,
    apiKey: whole.token,
    async close() {
      await close();
      await opened.dispose();
    },
  };
}
