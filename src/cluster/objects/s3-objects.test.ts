import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { objectStoreContract } from '../../../test/contracts/objects.js';
import { withEnvironment } from '../../../test/support/environment.js';
import { S3_REGION, type S3Fake, s3Fake } from '../../../test/support/s3-fake.js';
import { openObjects } from './open-objects.js';
import { S3Objects, s3Place } from './s3-objects.js';

const SECRET = 'a-secret-that-nobody-may-see';
let root: string;
let s3: S3Fake;
const restore = withEnvironment({
  AWS_ACCESS_KEY_ID: 'AKIDALL',
  AWS_SECRET_ACCESS_KEY: SECRET,
  AWS_PROFILE: undefined,
});
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-s3-'));
  s3 = await s3Fake(['mine', 'empty']);
});
afterEach(() => {
  s3.fault = () => undefined;
});
afterAll(async () => {
  restore();
  await s3.close();
  await rm(root, { recursive: true });
});

const here = () => ({ AWS_REGION: S3_REGION, AWS_ENDPOINT_URL: s3.url });
let opened = 0;
const open = (options: { retries?: number; silenceMs?: number } = {}) =>
  S3Objects.open(
    { bucket: 'mine', prefix: `prefix ${opened++}/` },
    { environment: here(), retryDelayMs: 1, partBytes: 5 << 20, ...options },
  );

objectStoreContract('S3', () => open(), { tags: 'verify' }, { tags: 'verify' });

describe('storage that fails', () => {
  it('is asked again, at most so often, and what came in part is fetched anew', async () => {
    const objects = await open({ retries: 3 });
    await writeFile(join(root, 'sent'), 'x'.repeat(100_000));
    let failures = 3;
    s3.fault = () => (failures-- > 0 ? { status: 503, code: 'SlowDown' } : undefined);
    await objects.put('file', join(root, 'sent'));
    let cuts = 2;
    s3.fault = ({ method }) => (method === 'GET' && cuts-- > 0 ? 'cut' : undefined);
    await objects.get('file', join(root, 'got'));
    expect(await readFile(join(root, 'got'), 'utf8')).toBe('x'.repeat(100_000));

    const before = s3.requests.length;
    s3.fault = () => ({ status: 500, code: 'InternalError' });
    await expect(objects.remove('file')).rejects.toMatchObject({
      reason: 'unreachable',
      message: expect.stringMatching(/^s3:\/\/mine\/prefix \d+: removing file: InternalError: .* \(500\)$/),
    });
    expect(s3.requests.length - before).toBe(4);
  });

  it('is asked again with the keys that replaced those of a session that is over', async () => {
    const file = join(root, 'credentials');
    const write = (id: string) =>
      writeFile(file, `[rotated]\naws_access_key_id=${id}\naws_secret_access_key=${SECRET}\n`);
    const rotated = withEnvironment({
      ...{ AWS_SHARED_CREDENTIALS_FILE: file, AWS_PROFILE: 'rotated' },
      ...{ AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined },
    });
    try {
      await write('AKIDALL');
      const objects = await open({ retries: 0 });
      expect(await objects.list('a/')).toEqual([]);
      await write('AKIDREAD');
      let before = s3.requests.length;
      s3.fault = ({ headers }) =>
        headers.authorization?.includes('AKIDALL') ? { status: 400, code: 'ExpiredToken' } : undefined;
      expect(await Promise.all([objects.list('a/'), objects.list('b/')])).toEqual([[], []]);
      expect(s3.requests.length - before).toBe(4);
      before = s3.requests.length;
      s3.fault = () => ({ status: 400, code: 'ExpiredToken' });
      await expect(objects.list('a/')).rejects.toThrow(/S3 rejects the credentials \(ExpiredToken\)$/);
      expect(s3.requests.length - before).toBe(1);
      await writeFile(file, '');
      await expect(objects.list('a/')).rejects.toThrow(/S3 rejects the credentials \(ExpiredToken\)$/);
      await write('AKIDALL');
      s3.fault = ({ headers }) =>
        headers.authorization?.includes('AKIDREAD') ? { status: 400, code: 'ExpiredToken' } : undefined;
      expect(await objects.list('a/')).toEqual([]);
    } finally {
      rotated();
    }
  });

  it('is asked again if it says nothing for a while', async () => {
    const objects = await open({ retries: 1, silenceMs: 200 });
    let silent = 1;
    s3.fault = () => (silent-- > 0 ? 'silence' : undefined);
    expect(await objects.list('a/')).toEqual([]);
    s3.fault = () => 'silence';
    await expect(objects.list('a/')).rejects.toThrow(/listing a\/: TimeoutError: .*200 ms/);
  });

  it('is asked again if clocks differ: the client corrects its time after the first answer', async () => {
    const objects = await open({ retries: 1 });
    let refusals = 1;
    s3.fault = () => (refusals-- > 0 ? { status: 403, code: 'RequestTimeTooSkewed' } : undefined);
    expect(await objects.list('a/')).toEqual([]);
    s3.fault = () => ({ status: 403, code: 'RequestTimeTooSkewed' });
    await expect(objects.list('a/')).rejects.toThrow(/the clock of this machine differs/);
  });

  it('is refused if it names no next page of a list: files of a run would be missing', async () => {
    const objects = await open();
    await writeFile(join(root, 'one'), '1');
    for (let i = 0; i < 12; i++) await objects.put(`many/${i}`, join(root, 'one'));
    expect(await objects.list('many/')).toHaveLength(12);
    s3.fault = () => 'no next page';
    await expect(objects.list('many/')).rejects.toMatchObject({ reason: 'damaged' });
  });

  it('is not asked again where it refuses', async () => {
    const objects = await open();
    s3.fault = () => ({ status: 403, code: 'AccessDenied' });
    const before = s3.requests.length;
    await expect(objects.list('a/')).rejects.toMatchObject({ reason: 'denied' });
    expect(s3.requests.length - before).toBe(1);
  });

  it('has no file of which only parts came', async () => {
    const objects = await open({ retries: 0 });
    await writeFile(join(root, 'large'), new Uint8Array(12_000_000));
    let parts = 2;
    s3.fault = ({ method }) => (method === 'PUT' && parts-- <= 0 ? { status: 500, code: 'InternalError' } : undefined);
    await expect(objects.put('large', join(root, 'large'))).rejects.toThrow('InternalError');
    expect(await objects.list('')).toEqual([]);
  });
});

describe('a large file', () => {
  /** An attempt to store a file whose last request has no answer; `stored` sees its key before the repetition. */
  async function cutOff(stored: (files: Map<string, Uint8Array>, key: string) => void): Promise<number> {
    const objects = await open();
    await writeFile(join(root, 'whole'), new Uint8Array(6_000_000));
    let posts = 0;
    s3.fault = ({ method, key }) => {
      if (method !== 'POST') return undefined;
      if (++posts === 3) stored(s3.stored.get('mine') ?? new Map(), key);
      return posts === 2 ? 'cut' : undefined;
    };
    await objects.put('whole', join(root, 'whole'));
    await objects.get('whole', join(root, 'again'));
    return (await readFile(join(root, 'again'))).length;
  }

  it('is stored if only the last answer is lost', async () => {
    expect(await cutOff(() => {})).toBe(6_000_000);
  });

  it('is not stored if the repetition finds no upload, and no file of its size', async () => {
    for (const other of [undefined, new Uint8Array(5)])
      await expect(
        cutOff((files, key) => (other === undefined ? files.delete(key) : files.set(key, other))),
      ).rejects.toThrow(/writing whole: NoSuchUpload/);
  });
});

describe('a place that cannot be used', () => {
  const refusal = (place: string, environment: NodeJS.ProcessEnv = {}) =>
    openObjects(place, { ...here(), ...environment }).then(
      () => 'opened',
      (error: Error) => {
        expect(`${error.message} ${error.stack}`).not.toContain(SECRET);
        return `${error.name}: ${error.message}`;
      },
    );

  it('is reported with a remedy', async () => {
    expect(await refusal('s3://mine/x')).toBe('opened');
    expect(await refusal('s3://other/x')).toMatch(/^StoreError: s3:\/\/other\/x: .*there is no bucket other$/);
    expect(await refusal('s3://mine/x', { AWS_REGION: 'us-east-1' })).toMatch(
      /the bucket mine is in eu-test-1: set AWS_REGION=eu-test-1/,
    );
    const asReader = withEnvironment({ AWS_ACCESS_KEY_ID: 'AKIDREAD' });
    expect(await refusal('s3://mine/x')).toMatch(
      /these credentials have no permission for the request \(AccessDenied\)$/,
    );
    asReader();
    const asNobody = withEnvironment({ AWS_ACCESS_KEY_ID: 'AKIDNOBODY' });
    expect(await refusal('s3://mine/x')).toMatch(/S3 rejects the credentials \(InvalidAccessKeyId\)$/);
    asNobody();
    const unknown = withEnvironment({
      AWS_ACCESS_KEY_ID: undefined,
      AWS_SECRET_ACCESS_KEY: undefined,
      HOME: root,
      AWS_EC2_METADATA_DISABLED: 'true',
    });
    expect(await refusal('s3://mine/x')).toMatch(/no credentials: set AWS_ACCESS_KEY_ID/);
    unknown();
    expect(await refusal('s3://mine/x', { AWS_REGION: undefined, AWS_ENDPOINT_URL: undefined })).toMatch(
      /no region: set AWS_REGION$/,
    );
  });

  it('is refused if its name has keys, and the message does not repeat them', async () => {
    for (const place of [`s3://AKID:${SECRET}@mine/x`, 's3://mine?x=1', 's3://A_B/x', 's3://mine/../x', 's3://'])
      expect(() => s3Place(place)).toThrow(/^expected --store s3:\/\/bucket\/prefix; drmas reads keys from/);
    expect(await refusal('s3://mine/x', { AWS_ENDPOINT_URL: `http://AKID:${SECRET}@127.0.0.1:1` })).toMatch(
      /^RecipeError: AWS_ENDPOINT_URL contains a user or a password/,
    );
    expect(s3Place('/mnt/shared')).toBeUndefined();
    expect(s3Place('s3://mine')).toEqual({ bucket: 'mine', prefix: '' });
    expect(s3Place('s3://mine/a/b/')).toEqual({ bucket: 'mine', prefix: 'a/b/' });
  });

  it('cannot write outside of a directory', async () => {
    const { takeCopy } = await import('./run-copies.js');
    const objects = await open();
    await writeFile(join(root, 'evil'), 'x');
    for (const name of ['recipe.json', 'checkpoints/step-000001/digests.json', '../../../escaped'])
      await objects.put(`runs/evil/w/${name}`, join(root, 'evil'));
    s3.stored.get('mine')?.set(`prefix ${opened - 1}/runs/evil/w/../../../escaped`, Buffer.from('x'));
    await expect(takeCopy(objects, join(root, 'in', 'evil'))).rejects.toThrow(/is not a valid file name/);
    expect(await readdir(join(root, 'in'))).toEqual([]);
  });
});
