import { ArgumentError, messageOf } from '../../base/errors.js';
import { chosenToken, type Environment, listen } from '../../base/platform.js';
import { pageDirectory } from '../report/page-directory.js';
import { RunCatalog } from './run-catalog.js';
import { TalkService } from './talk/talk-service.js';
import { watchApp, watchGuard } from './watch-app.js';

/** The default port. If it is in use, a free one is chosen. */
const PORT = 7373;

/** The options of the dashboard's server. */
export interface WatchOptions {
  /** A run, an ablation or a folder of runs. */
  readonly folder: string;
  /** Default: this machine only. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  /** The token that a browser must send; by default DRMAS_TOKEN of the environment, if it is set. */
  readonly token?: string | undefined;
  readonly environment?: Environment;
  /** Names besides those of this machine that browsers may reach the server under. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Kernel threads for answers of agents. Default 1. */
  readonly threads?: number | undefined;
}

/** A running server. */
export interface WatchServer {
  /** The address to open, with the token if there is one. */
  readonly url: string;
  /** The number of runs in the folder. */
  readonly runs: number;
  close(): Promise<void>;
}

/**
 * Serves the dashboard of a folder of runs. It reads their files and writes nothing.
 * @throws ArgumentError when the host needs a token or the port is in use, RunError when the folder cannot be read; the
 * server then does not listen
 */
export async function startWatching(options: WatchOptions): Promise<WatchServer> {
  const { folder, host = '127.0.0.1', port, threads, allowedHosts } = options;
  const token = chosenToken(options.token, options.environment ?? {}, host);
  const page = pageDirectory();
  const catalog = new RunCatalog(folder);
  const runs = (await catalog.refresh()).length;
  const ending = new AbortController();
  const talk = new TalkService({ threads });
  const app = watchApp({ catalog, talk, page, signal: ending.signal });
  const guard = watchGuard(token, allowedHosts);
  const listening = await listen({ app, guard }, { host, port: port ?? PORT })
    .catch((error: unknown) => {
      if (port !== undefined) throw error;
      return listen({ app, guard }, { host, port: 0 });
    })
    .catch((error: unknown) => {
      throw new ArgumentError(`the dashboard cannot listen on ${host}, port ${port ?? PORT}: ${messageOf(error)}`);
    });
  return {
    url: `${listening.url}/${token === undefined ? '' : `?token=${encodeURIComponent(token)}`}`,
    runs,
    async close() {
      ending.abort();
      await talk.close();
      await listening.close();
    },
  };
}
