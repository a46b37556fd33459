import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { RecipeError } from '@drmas/engine/errors';
import fc from 'fast-check';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { AnnouncementError, QueueKey, queueKey } from './queue-key.js';
import { connectRedis, queueModules } from './redis.js';

const root = mkdtempSync(join(tmpdir(), 'drmas-queue-key-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const announced = { run: 'r', url: 'http://127.0.0.1:9', source: '/home/a/recipe.ts', codeHash: 'c' };
const text = 'x'.repeat(32);
const key = new QueueKey(text, 'DRMAS_QUEUE_KEY');

describe('an announcement', () => {
  it('is read by who has the key, for the queue that it was signed for', () => {
    const signed = key.sign('drmas', announced);
    expect(key.read('drmas', signed)).toEqual(announced);
    const other = new QueueKey('y'.repeat(32), '/home/b/queue-key');
    expect(() => other.read('drmas', signed)).toThrow('not signed with the key in /home/b/queue-key');
    expect(() => key.read('other', signed)).toThrow(AnnouncementError);
  });

  it('has no secret: neither the key nor what workers register with', () => {
    const signed = key.sign('drmas', announced);
    for (const secret of [text, key.door('r'), key.proof('r', 'n')]) expect(signed).not.toContain(secret);
    expect(JSON.stringify(key)).not.toContain(text);
    expect(new Set([key.door('r'), key.door('s'), key.proof('r', 'n'), key.proof('r', 'm')]).size).toBe(4);
  });

  it('is refused if one character of it differs', () => {
    const signed = key.sign('drmas', announced);
    const change = fc.record({ at: fc.nat({ max: signed.length - 1 }), by: fc.string({ minLength: 1, maxLength: 1 }) });
    fc.assert(
      fc.property(change, ({ at, by }) => {
        const changed = signed.slice(0, at) + by + signed.slice(at + 1);
        fc.pre(changed !== signed);
        expect(() => key.read('drmas', changed)).toThrow(AnnouncementError);
      }),
    );
  });

  it.each(['', 'hello', '{', 'null', '7', '[]', '"text"', '{"body":1,"signature":"x"}', '{"run":"x","secret":"s"}'])(
    'is not the text %j',
    (other) => {
      expect(() => key.read('drmas', other)).toThrow('it is not the announcement of a run');
    },
  );
});

describe('the key of a queue', () => {
  it('is the variable, or a file that only this user can read, which is made once', async () => {
    const file = join(root, 'config', 'queue-key');
    expect((await queueKey({ DRMAS_QUEUE_KEY: ` ${text}\n` }, file)).door('r')).toBe(key.door('r'));
    const keys = await Promise.all(Array.from({ length: 8 }, () => queueKey({}, file)));
    expect(new Set(keys.map((each) => each.door('r'))).size).toBe(1);
    expect(keys[0]?.place).toBe(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await queueKey({ DRMAS_QUEUE_KEY: readFileSync(file, 'utf8') }, '')).door('r')).toBe(keys[0]?.door('r'));
  });

  it('is refused if it is short, or others can read its file', async () => {
    await expect(queueKey({ DRMAS_QUEUE_KEY: 'secret' })).rejects.toThrow(
      'the key in DRMAS_QUEUE_KEY has 6 characters; expected at least 32',
    );
    const file = join(root, 'open');
    writeFileSync(file, text);
    chmodSync(file, 0o644);
    await expect(queueKey({}, file)).rejects.toThrow(`other users can read the key in ${file}`);
    await expect(queueKey({}, join(file, 'below'))).rejects.toThrow('set DRMAS_QUEUE_KEY');
  });
});

/** A self-signed certificate for 127.0.0.1, valid until 2126, and its key. Only this test uses them. */
const SELF_SIGNED = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBkDCCATagAwIBAgIUHzqomResJSCtyxFx1r6XIGj/9lwwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEyMzE4NDQzNFoYDzIxMjYxMDMw
MTg0NDM0WjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAScYR9v9h5ZSRSVjefROBu2wO2ubGkAGr3+Od5tAeEp1dj/ANfJ80zZ
Fl4tJGbs2iEXsmRGLlfVhUWkQ/eXa4eXo2QwYjAdBgNVHQ4EFgQUt6DFz01O3s02
zpD/PF2L10MoYAIwHwYDVR0jBBgwFoAUt6DFz01O3s02zpD/PF2L10MoYAIwDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0gAMEUC
IQDz/26Nr3REtFoIS0Rj0RTajWEjvJzvpTyGBMr0otP2OgIgZhEQnKhJ656XZIn4
eVmIvma+L60jUKWKDj6kWoZRpHY=
-----END CERTIFICATE-----`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgecxx2O755JwxxGIR
x71pnlwDYDb5fjU0mPpgkd4j/Z2hRANCAAScYR9v9h5ZSRSVjefROBu2wO2ubGkA
Gr3+Od5tAeEp1dj/ANfJ80zZFl4tJGbs2iEXsmRGLlfVhUWkQ/eXa4eX
-----END PRIVATE KEY-----`,
};

describe('a connection to Redis', () => {
  const disposals: (() => void)[] = [];
  afterEach(() => {
    for (const dispose of disposals.splice(0)) dispose();
  });

  /** Connects to a server, which does this with each connection. Returns the error. */
  async function refused(server: Server, protocol = 'redis'): Promise<unknown> {
    server.listen(0, '127.0.0.1');
    disposals.push(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return connectRedis(await queueModules(), `${protocol}://127.0.0.1:${port}`).catch((error: unknown) => error);
  }
  const serving = (act: (socket: Socket) => void) => createServer((socket) => act(socket.on('error', () => {})));

  const closed = /there is no Redis at/;
  it.each<[string, (socket: Socket) => void, RegExp]>([
    ['speaks HTTP', (socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'), /Unknown RESP type/],
    ['closes', (socket) => void socket.destroy(), closed],
    ['closes within an answer', (socket) => void socket.end('$100\r\nabc'), closed],
  ])('is refused if the server %s', (_, act, message) => refusesServer(act, message));

  it('is refused if the server nests without end', { tags: 'verify' }, () =>
    refusesServer((socket) => void socket.write('*1\r\n'.repeat(1e5)), closed),
  );

  async function refusesServer(act: (socket: Socket) => void, message: RegExp) {
    const error = await refused(serving(act));
    expect(error).toBeInstanceOf(RecipeError);
    expect(error).toMatchObject({ message: expect.stringMatching(message) });
  }

  it('is given up if the server does not answer', { tags: 'verify' }, async () => {
    for (const bytes of ['', '*1000000000\r\n'])
      expect(await refused(serving((socket) => void socket.write(bytes)))).toMatchObject({
        message: expect.stringMatching(/there is no Redis at .*: no answer in 5 s$/),
      });
  });

  it('is refused with a password in the address, which is not repeated, and for what is no address', async () => {
    const modules = await queueModules();
    const withPassword = connectRedis(modules, 'redis://:hunter22@127.0.0.1:1');
    await expect(withPassword).rejects.toThrow(/^rollout.url: a password belongs into REDIS_PASSWORD/);
    await expect(withPassword).rejects.not.toThrow('hunter22');
    for (const url of ['nowhere', 'http://127.0.0.1:1', ''])
      await expect(connectRedis(modules, url)).rejects.toThrow(/^rollout.url: expected an address such as redis:/);
  });

  it('over TLS needs a certificate that this machine trusts, and says so', async () => {
    let heard = 0;
    const server = createTlsServer(SELF_SIGNED, (socket) => socket.on('data', () => heard++)).on('error', () => {});
    expect(await refused(server, 'rediss')).toMatchObject({
      message: expect.stringMatching(/there is no Redis at rediss:.*: self-signed certificate/),
    });
    expect(heard).toBe(0);
  });
});
