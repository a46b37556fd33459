/** The embedded engine behind a port of this machine, as `drmas serve --tinker` puts it there. */
import { listen } from '../../src/base/platform/servers/listen.js';
import { nodeHost } from '../../src/base/platform/node-host.js';
import { openTinker, type TinkerRequest } from '../../src/tinker/server/open-tinker.js';

export interface TinkerServer {
  readonly url: string;
  close(): Promise<void>;
}

export async function serveTinker(
  request: Pick<TinkerRequest, 'model' | 'store'> & Partial<TinkerRequest>,
): Promise<TinkerServer> {
  const defaults = { most: 256, mostModels: 64, idleSeconds: 60 };
  const opened = await openTinker({ ...defaults, ...request }, nodeHost({ threads: 1 }));
  const { url, close } = await listen(opened.app, { host: '127.0.0.1', port: 0 });
  return {
    url,
    async close() {
      await close();
      await opened.dispose();
    },
  };
}
