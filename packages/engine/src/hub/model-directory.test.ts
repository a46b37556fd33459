import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { COMMIT, type HubServer, hashOf, hubServer, refuse, send } from '../../../../test/support/hub-server.js';
import { eventually, repeatedly, timeForMishaps } from '../../../../test/support/time-and-chance.js';
import { CheckpointError, HubError } from '../base/core/errors.js';
import { cacheRoot } from './model-cache.js';
import { type ModelDirectoryOptions, modelDirectory } from './model-directory.js';

/** Bytes of a file of weights, which differ along the file. */
const bytesOf = (length: number) => Buffer.from(Array.from({ length }, (_, i) => (i * 31 + (i >> 8)) % 251));
const weights = bytesOf(300_000);
const small = {
  'config.json': '{"model_type":"qwen2"}',
  'generation_config.json': '{}',
  'tokenizer.json': '{"version":"1.0"}',
  'tokenizer_config.json': '{"eos_token":null}',
  'chat_template.jinja': '{{ messages }}',
};
const content = {
  'README.md': '# A model',
  'modeling_custom.py': 'print("never")',
  'pytorch_model.bin': bytesOf(50),
  'vocab.json': '{}',
  'onnx/model.safetensors': bytesOf(50),
  ...small,
  'model.safetensors': weights,
};
const needed = [...Object.keys(small), 'model.safetensors'].sort();

let hub: HubServer;
let home = '';
let messages: string[] = [];
beforeEach(async () => {
  hub = await hubServer('org/tiny', content);
  home = await mkdtemp(join(tmpdir(), 'drmas-hub-'));
  messages = [];
});
afterEach(async () => {
  await hub.close();
  await rm(home, { recursive: true, force: true });
});

const variables = () => ({ HF_HOME: home, HF_ENDPOINT: hub.url });
function locate(model: string, { environment, ...options }: ModelDirectoryOptions = {}): Promise<string> {
  return modelDirectory(model, {
    environment: { ...variables(), ...environment },
    retryDelayMs: 1,
    onProgress: (message) => messages.push(message),
    ...options,
  });
}
const repository = () => join(home, 'hub', 'models--org--tiny');
const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => `resolved with ${value}`,
    (reason: unknown) => reason,
  );
async function failure(promise: Promise<unknown>): Promise<HubError> {
  const error = await failureOf(promise);
  expect(error).toBeInstanceOf(HubError);
  return error as HubError;
}
/** Sends half of a large file and ends the connection. */
function sendHalf(response: ServerResponse, bytes: Buffer): void {
  response.writeHead(200, { etag: '"x"', 'content-length': bytes.length });
  response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
}
const askedForAll = (url = '', range = '') => !url.startsWith('/api') && url.length === 65 && range === '';

describe('a model on a hub', () => {
  it('is downloaded into the layout of huggingface_hub, the needed files and no others', async () => {
    const directory = await locate('org/tiny');
    expect(directory).toBe(join(repository(), 'snapshots', COMMIT));
    expect((await readdir(directory)).sort()).toEqual(needed);
    for (const name of needed) {
      const bytes = Buffer.from(content[name as keyof typeof content]);
      expect(await readFile(join(directory, name))).toEqual(bytes);
      expect(await readlink(join(directory, name))).toBe(`../../blobs/${hashOf(name, bytes)}`);
    }
    expect((await readdir(join(repository(), 'blobs'))).length).toBe(needed.length);
    expect(await readFile(join(repository(), 'refs', 'main'), 'utf8')).toBe(COMMIT);
    expect(hub.requests.some((request) => /README|\.py|\.bin|onnx|vocab/.test(request))).toBe(false);
    expect(messages[0]).toContain('Downloading org/tiny: config.json');
    expect(messages[1]).toBe('Downloading org/tiny: model.safetensors (300.0 kB)');
  });

  it('is asked for its commit and its list, and downloaded no second time', async () => {
    const first = await locate('org/tiny');
    hub.requests.length = 0;
    messages = [];
    expect(await locate('org/tiny')).toBe(first);
    expect(hub.requests.every((request) => request.startsWith('GET /api/models/org/tiny/'))).toBe(true);
    expect(messages).toEqual([]);
  });

  it('is refused before its weights are downloaded if the engine cannot compute it', async () => {
    const phi = { architectures: ['Phi3ForCausalLM'], model_type: 'phi3' };
    hub.files.set('config.json', Buffer.from(JSON.stringify(phi)));
    await expect(locate('org/tiny')).rejects.toThrow(/Phi3ForCausalLM.*queries, keys and values in one tensor/);
    expect(hub.requests).not.toContain('GET blob');
    expect(await locate('org/tiny', { files: 'tokenizer' })).toBe(join(repository(), 'snapshots', COMMIT));
  });

  it('may have a file without bytes', async () => {
    hub.files.set('chat_template.jinja', Buffer.alloc(0));
    const directory = await locate('org/tiny');
    expect(await readFile(join(directory, 'chat_template.jinja'))).toEqual(Buffer.alloc(0));
    expect(await readFile(join(directory, 'model.safetensors'))).toEqual(weights);
  });

  it('shares its blobs between revisions', async () => {
    await locate('org/tiny');
    hub.revisions.set('v2/beta', COMMIT);
    expect(await locate('org/tiny@v2/beta')).toBe(join(repository(), 'snapshots', COMMIT));
    expect(await readFile(join(repository(), 'refs', 'v2', 'beta'), 'utf8')).toBe(COMMIT);
    // the question for its size, and its bytes
    expect(hub.requests.filter((request) => request === 'GET blob').length).toBe(2);
  });

  it('comes without weights where only its tokenizer is needed', async () => {
    const directory = await locate('org/tiny', { files: 'tokenizer' });
    expect((await readdir(directory)).sort()).toEqual(Object.keys(small).sort());
  });

  it('comes in several files where its index names them', async () => {
    hub.files.delete('model.safetensors');
    hub.files.set('consolidated.safetensors', bytesOf(9)); // not in the index
    const shards = { a: 'model-1.safetensors', b: 'model-2.safetensors', c: 'model-1.safetensors' };
    hub.files.set('model.safetensors.index.json', Buffer.from(JSON.stringify({ weight_map: shards })));
    for (const name of Object.values(shards)) hub.files.set(name, bytesOf(1000));
    const names = await readdir(await locate('org/tiny'));
    expect(names.filter((name) => name.endsWith('.safetensors')).sort()).toEqual([...new Set(Object.values(shards))]);
    hub.files.delete('model-2.safetensors');
    await rm(repository(), { recursive: true });
    expect((await failure(locate('org/tiny'))).message).toContain('org/tiny has no model-2.safetensors');
  });

  it.each(['../x.safetensors', 'x.bin', 7, '/x.safetensors'])('refuses an index that names %j', async (shard) => {
    hub.files.delete('model.safetensors');
    hub.files.set('model.safetensors.index.json', Buffer.from(JSON.stringify({ weight_map: { a: shard } })));
    expect((await failure(locate('org/tiny'))).reason).toBe('damaged');
  });

  it('goes on where an interrupted download ended', { tags: 'verify' }, async () => {
    const stop = new AbortController();
    hub.intercept = ({ url, headers }, response) => {
      if (!askedForAll(url, headers.range)) return false;
      response.writeHead(200, { etag: '"x"', 'content-length': weights.length });
      response.write(weights.subarray(0, 100_000));
      // Not before the bytes are on disk: what was received is kept.
      const end = repeatedly(5, async () => {
        const blobs = await readdir(join(repository(), 'blobs'));
        const partial = blobs.find((name) => name.endsWith('.incomplete'));
        if (!partial || (await readFile(join(repository(), 'blobs', partial))).length < 100_000) return;
        end();
        stop.abort(new Error('enough'));
      });
      return true;
    };
    await expect(locate('org/tiny', { signal: stop.signal })).rejects.toThrow('enough');
    hub.intercept = () => false;
    hub.requests.length = 0;
    expect(await readFile(join(await locate('org/tiny'), 'model.safetensors'))).toEqual(weights);
    expect(hub.requests).toContain('GET blob [bytes=100000-299999]');
    expect(await readdir(join(home, 'hub', '.locks', 'models--org--tiny'))).toEqual([]);
  });

  it('goes on by itself after a broken connection, a busy server and damaged bytes', { tags: 'verify' }, async () => {
    const questions = new Set<string | undefined>();
    const faults: ((response: ServerResponse) => void)[] = [
      (response) => sendHalf(response, weights),
      (response) => refuse(response, 429, 'TooManyRequests'),
      (response) => refuse(response, 503, 'Unavailable'),
    ];
    hub.intercept = ({ url, headers }, response) => {
      if (url?.startsWith('/api/') && !questions.has(url.replace(/\?.*/, ''))) {
        questions.add(url.replace(/\?.*/, ''));
        refuse(response, 503, 'Unavailable');
        return true;
      }
      if (url?.length !== 65 || headers.range === 'bytes=0-0') return false;
      const fault = faults.shift();
      fault?.(response);
      return fault !== undefined;
    };
    expect(await readFile(join(await locate('org/tiny'), 'model.safetensors'))).toEqual(weights);
    expect(faults).toEqual([]);
    expect(questions.size).toBe(2);
  });

  it('is asked again when a busy hub says, unless the cache has the commit', async () => {
    const limit = { ratelimit: '"api";r=0;t=100' };
    const busy: HubServer['intercept'] = (_, response) => {
      response.writeHead(429, limit).end();
      return true;
    };
    hub.intercept = busy;
    const stop = new AbortController();
    const waiting = failureOf(locate('org/tiny', { signal: stop.signal }));
    const asked = `${hub.url} answered with status 429; asking again in 100 s, as it wishes`;
    await eventually(() => expect(messages).toEqual([asked]));
    await timeForMishaps(50);
    expect(hub.requests.length).toBe(1);
    stop.abort(new Error('enough'));
    expect(await waiting).toEqual(new Error('enough'));
    hub.intercept = () => false;
    const directory = await locate('org/tiny');
    hub.intercept = busy;
    expect(await locate('org/tiny')).toBe(directory);
    expect(messages.at(-1)).toContain('answered with status 429; taking org/tiny as it was last downloaded');
  });

  it('is not accepted with other bytes than announced', async () => {
    const wrong = Buffer.from(weights);
    wrong[5] = (wrong[5] as number) ^ 1;
    hub.intercept = (request, response) => {
      if (request.url?.length !== 65) return false;
      send(request, response, wrong, 'x');
      return true;
    };
    const error = await failure(locate('org/tiny'));
    expect(error.reason).toBe('damaged');
    expect(error.message).toContain('model.safetensors: expected contents with the hash');
    expect((await readdir(join(repository(), 'blobs'))).length).toBe(needed.length - 1);
  });

  it('is downloaded once by two processes at once', { tags: 'verify' }, async () => {
    const script = `
      const { modelDirectory } = await import(${JSON.stringify(new URL('./model-directory.ts', import.meta.url).href)});
      console.log(await modelDirectory('org/tiny'));`;
    const run = () =>
      new Promise<string>((resolve) => {
        const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
          env: { ...process.env, ...variables() },
        });
        let output = '';
        child.stdout.on('data', (chunk) => {
          output += chunk;
        });
        child.stderr.on('data', (chunk) => {
          output += chunk;
        });
        child.on('close', () => resolve(output.trim()));
      });
    const directory = join(repository(), 'snapshots', COMMIT);
    expect(await Promise.all([run(), run()])).toEqual([directory, directory]);
    expect(await readFile(join(directory, 'model.safetensors'))).toEqual(weights);
    expect(hub.requests.filter((request) => request === 'GET blob').length).toBe(2);
  });
});

describe('the token', () => {
  it('opens what is closed, and reaches the endpoint only', async () => {
    hub.intercept = ({ url, headers }, response) => {
      if (url?.length === 65 || headers.authorization === 'Bearer secret') return false;
      refuse(response, 401, 'RepoNotFound');
      return true;
    };
    expect((await failure(locate('org/tiny'))).reason).toBe('denied');
    await locate('org/tiny', { environment: { HF_TOKEN: 'secret' } });
    expect(hub.leaked).toEqual([]);
  });

  it.each([
    [403, 'GatedRepo', 'is gated: accept its terms on'],
    [401, 'RepoNotFound', 'does not exist, is private, or needs a token; set HF_TOKEN'],
  ])('is asked for at %i %s', async (status, code, text) => {
    hub.intercept = (_, response) => {
      refuse(response, status, code);
      return true;
    };
    const error = await failure(locate('org/tiny'));
    expect(error.reason).toBe('denied');
    expect(error.message).toContain(text);
  });
});

describe('a model that cannot be had', () => {
  it('says what is missing', async () => {
    expect((await failure(locate('org/other'))).message).toContain('neither a directory here nor a model on http');
    const error = await failure(locate('org/tiny@v9'));
    expect([error.reason, error.message]).toEqual(['missing', `org/tiny has no revision "v9" on ${hub.url}`]);
    hub.files.delete('model.safetensors');
    expect((await failure(locate('org/tiny'))).message).toBe(
      'org/tiny has no model.safetensors (found pytorch_model.bin; only safetensors are read)',
    );
    hub.files.delete('tokenizer.json');
    expect((await failure(locate('org/tiny'))).message).toBe('org/tiny has no tokenizer.json');
    expect(await readdir(home)).toEqual([]);
  });

  it('is not asked for where the network is switched off', async () => {
    const environment = { HF_HUB_OFFLINE: '1' };
    const error = await failure(locate('org/tiny', { environment }));
    expect([error.reason, error.exitCode]).toEqual(['offline', 2]);
    expect(error.message).toContain('lacks revision "main"');
    expect(hub.requests).toEqual([]);
    const directory = await locate('org/tiny');
    hub.requests.length = 0;
    expect(await locate('org/tiny', { environment })).toBe(directory);
    expect(await locate(`org/tiny@${COMMIT}`, { environment })).toBe(directory);
    expect(hub.requests).toEqual([]);
    await rm(join(directory, 'model.safetensors'));
    expect((await failure(locate('org/tiny', { environment }))).message).toContain('lacks model.safetensors');
    expect(await locate('org/tiny', { environment, files: 'tokenizer' })).toBe(directory);
  });

  it('comes from the cache, with a word about it, where the hub does not answer', async () => {
    const directory = await locate('org/tiny');
    messages = [];
    await hub.close();
    expect(await locate('org/tiny')).toBe(directory);
    expect(messages).toEqual([
      expect.stringMatching(/cannot be reached: .*; taking org\/tiny as it was last downloaded/),
    ]);
    const error = await failure(locate('org/other'));
    expect(error.reason).toBe('unreachable');
    expect(error.message).toMatch(/ECONNREFUSED.*lacks revision "main"/);
  });

  it.each(['hub.example', 'ftp://hub.example', 'http://'])('is not looked for at %j', async (HF_ENDPOINT) =>
    expect((await failure(locate('org/tiny', { environment: { HF_ENDPOINT } }))).message).toContain('HF_ENDPOINT'),
  );

  it.each([
    'https://alice:s3cret@hub.example',
    'https://s3cret@hub.example',
    'alice:s3cret@hub.example',
    'https://a:s3cret@',
  ])('is not looked for with a password in the address, which is not shown: %j', async (HF_ENDPOINT) => {
    const { message } = await failure(locate('org/tiny', { environment: { HF_ENDPOINT } }));
    expect(message).toContain('HF_ENDPOINT: expected the address of a hub without a user name or a password');
    expect(message + messages.join()).not.toMatch(/s3cret|alice/);
  });

  it('says so where something else answers', async () => {
    hub.intercept = (_, response) => {
      response.end('<html>Please log in to this network</html>');
      return true;
    };
    expect((await failure(locate('org/tiny'))).message).toContain('does not answer as a hub does');
  });

  it('says where the disk is full, and keeps nothing half done in its place', async () => {
    await mkdir(join(repository(), 'blobs'), { recursive: true });
    await symlink('/dev/full', join(repository(), 'blobs', `${hashOf('model.safetensors', weights)}.drmas.incomplete`));
    const error = await failure(locate('org/tiny'));
    expect(error.reason).toBe('disk');
    expect(error.message).toMatch(/cannot be written: ENOSPC/);
    expect((await readdir(join(repository(), 'snapshots', COMMIT))).sort()).toEqual(Object.keys(small).sort());
    expect((await failure(locate('org/tiny', { environment: { HF_HUB_OFFLINE: '1' } }))).reason).toBe('offline');
  });

  it('is not begun where the disk has no room for all of it', async () => {
    hub.intercept = ({ url }, response) => {
      if (!url?.includes('/tree/')) return false;
      const entry = (path: string, size: number) => ({ type: 'file', path, size, oid: 'a'.repeat(40) });
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(Object.keys(small).map((name) => entry(name, 1e17))));
      return true;
    };
    const error = await failure(locate('org/tiny', { files: 'tokenizer' }));
    expect(error.reason).toBe('disk');
    expect(error.message).toMatch(/500000000\.0 GB are to be downloaded, but .* are free/);
  });
});

describe('a path', () => {
  it('is a directory that exists, whatever it looks like', async () => {
    const before = process.cwd();
    await mkdir(join(home, 'org', 'tiny'), { recursive: true });
    process.chdir(home);
    try {
      expect(await locate('org/tiny')).toBe('org/tiny');
    } finally {
      process.chdir(before);
    }
    expect(hub.requests).toEqual([]);
  });

  it.each(['./org/tiny', '../tiny', '/org/tiny', '~/no-such-directory/x', 'a/b/c', 'tiny'])(
    'that does not exist is not looked for on a hub: %s',
    async (path) => {
      const error = await locate(path).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(CheckpointError);
      expect(error).not.toBeInstanceOf(HubError);
      expect(hub.requests).toEqual([]);
    },
  );
});

describe('the cache', () => {
  it('lies where huggingface_hub has it', () => {
    expect(cacheRoot({ HF_HUB_CACHE: '/a', HUGGINGFACE_HUB_CACHE: '/b', HF_HOME: '/c' })).toBe('/a');
    expect(cacheRoot({ HUGGINGFACE_HUB_CACHE: '/b', HF_HOME: '/c' })).toBe('/b');
    expect(cacheRoot({ HF_HOME: '~/c' })).toBe(join(homedir(), 'c', 'hub'));
    expect(cacheRoot({ XDG_CACHE_HOME: '/x' })).toBe('/x/huggingface/hub');
    expect(cacheRoot({})).toBe(join(homedir(), '.cache', 'huggingface', 'hub'));
  });

  it('that cannot be written is named', async () => {
    await writeFile(join(home, 'hub'), '');
    const error = await failure(locate('org/tiny'));
    expect([error.reason, error.message.includes(join(home, 'hub'))]).toEqual(['disk', true]);
  });
});
