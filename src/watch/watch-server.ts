import { ArgumentError, messageOf } from '../core/errors.js';
import { listen } from '../platform/listen.js';
import { pageDirectory } from '../report/page-directory.js';
import { checkAccess } from './access.js';
import { RunCatalog } from './run-catalog.js';
import { TalkDesk } from './talk/talk-desk.js';
import { watchApp } from './watch-app.js';

/** The port that is tried where none is asked for; a free one is taken where it is in use. */
const PORT = 7373;

/** The options of the dashboard's server. */
export interface WatchOptions {
  /** A run, an ablation or a folder of them. */
  readonly folder: string;
  /** Default: this machine alone. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** Required where other machines can connect. */
  readonly token?: string | undefined;
  /** Threads that compute answers of agents. Default 1. */
  readonly threads?: number | undefined;
}

/** A server that listens. */
export interface WatchServer {
  /** The address to open, with the token where there is one. */
  readonly url: string;
  /** How many runs lie in the folder. */
  readonly runs: number;
  close(): Promise<void>;
}

/**
 * Serves the dashboard of a folder of runs. It reads their files and writes nothing.
 * @throws ArgumentError when the host asks for a token or the port cannot be had, RunError when the folder cannot be
 *   read; nothing listens then
 */
export async function startWatching(options: WatchOptions): Promise<WatchServer> {
  const { folder, host = '127.0.0.1', port, token, threads } = options;
  checkAccess(host, token);
  const page = pageDirectory();
  const catalog = new RunCatalog(folder);
  const runs = (await catalog.refresh()).length;
  const ending = new AbortController();
  const desk = new TalkDesk({ threads });
  const app = watchApp({ catalog, desk, page, token, signal: ending.signal });
  const listening = await listen(app, { host, port: port ?? PORT })
    .catch((error: unknown) => {
      if (port !== undefined) throw error;
      return listen(app, { host, port: 0 });
    })
    .catch((error: unknown) => {
      throw new ArgumentError(`the dashboard cannot listen at ${host}, port ${port ?? PORT}: ${messageOf(error)}`);
    });
  return {
    url: `${listening.url}/${token === undefined ? '' : `?token=${encodeURIComponent(token)}`}`,
    runs,
    async close() {
      ending.abort();
      await desk.close();
      await listening.close();
    },
  };
}
