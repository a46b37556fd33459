/** A real server with S3's interface: moto's, from PyPI, in a throw-away environment (107 MB). */

import { withEnvironment } from './environment.js';
import { pythonEnvironment } from './python-environment.js';
import { freePort, ServerProcess } from './server-process.js';

export interface S3Server {
  readonly url: string;
  /** Ends the server, and takes its variables away. */
  stop(): Promise<void>;
}

/** The secret key of the tests' processes. */
export const S3_SECRET = 'a-secret-of-the-nodes';

/** The interpreter that has the server, or why there is none. */
export const s3Environment = () =>
  pythonEnvironment({
    name: 's3',
    requirements: new URL('../s3/requirements.txt', import.meta.url),
    what: "moto's server of S3 (107 MB)",
  });

/** Starts it with a bucket `mine`; this process and those that it starts reach it by the variables of AWS's tools. */
export async function startS3Server(python: string): Promise<S3Server> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const server = new ServerProcess(python, ['-m', 'moto.server', '-p', `${port}`], {});
  await server.ready(`${url}/moto-api/`, async () => {
    const response = await fetch(`${url}/mine`, { method: 'PUT' });
    if (!response.ok) throw new Error(`no bucket: ${response.status} ${await response.text()}`);
  });
  const restore = withEnvironment({
    AWS_ACCESS_KEY_ID: 'AKIDTEST',
    AWS_SECRET_ACCESS_KEY: S3_SECRET,
    AWS_SESSION_TOKEN: undefined,
    AWS_REGION: 'us-east-1',
    AWS_ENDPOINT_URL: url,
    AWS_ENDPOINT_URL_S3: undefined,
    AWS_PROFILE: undefined,
  });
  return {
    url,
    async stop() {
      restore();
      await server.stop();
    },
  };
}
