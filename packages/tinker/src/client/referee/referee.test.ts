/** The referee on our own server, which keeps all rules, and on stand-ins for servers that are known to break some. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { drmas } from '../../../../../test/support/command-line.js';
import { serveTinker, type TinkerServer } from '../../../../../test/support/serve-tinker.js';
import { writeBaseModel } from '../../../../../test/support/tinker-fake/base-model.js';
import type { FakeBehaviour, FakeName, FakeOptions } from '../../../../../test/support/tinker-fake/options.js';
import { TinkerFake } from '../../../../../test/support/tinker-fake/server.js';
import { temporaryRoot } from '../../../../../test/support/tiny-run.js';
import { probeServer } from '../probe/server-probe.js';
import { knownProfile, PROFILES, type ServerProfile } from '../server-profile.js';
import { defaultTiming } from '../wire/http.js';
import { TinkerClient } from '../wire/tinker-client.js';
import { type RefereeFinding, type RefereeRequest, referee, refereeCases } from './referee.js';

const root = temporaryRoot();
let directory = '';
let ours: TinkerServer;
const fakes: TinkerFake[] = [];
beforeAll(async () => {
  directory = await writeBaseModel(root);
  ours = await serveTinker({ model: directory, store: join(root, 'store'), mostModels: 4 });
});
afterAll(() => Promise.all([ours.close(), ...fakes.map((fake) => fake.close())]));

async function fakeOf(behaves: FakeName, changes: Partial<FakeBehaviour> = {}): Promise<string> {
  const fake = await TinkerFake.start({ directory, behaves, changes, pollMs: 50, maxModels: 500 });
  fakes.push(fake);
  return fake.url;
}

const judged = (url: string, request: Partial<RefereeRequest>) =>
  referee({
    url,
    apiKey: undefined,
    profile: 'auto',
    budgetSeconds: 120,
    tolerance: 1e-5,
    timing: { backOff: 0.01, total: 30, patienceMs: 400 },
    ...request,
  });

const failing = ({ core, outcome }: RefereeFinding) => core && outcome !== 'pass' && outcome !== 'known difference';

describe('the referee', () => {
  it('has names and sentences of its own for its cases', () => {
    for (const key of ['name', 'about'] as const)
      expect(new Set(refereeCases.map((one) => one[key])).size).toBe(refereeCases.length);
    expect(refereeCases.length).toBeGreaterThanOrEqual(40);
  });

  it('passes our own server in all cases, bit for bit, also beside the engine on the same files', {
    tags: 'verify',
  }, async () => {
    const words = [
      'doctor',
      'server',
      ours.url,
      '--json',
      '--reference',
      directory,
      '--tolerance',
      '0.000001',
      '--hostile',
    ];
    const { code, out, err } = await drmas(words, { environment: { TINKER_API_KEY: ours.apiKey } });
    const { findings, ...report } = JSON.parse(out) as { findings: RefereeFinding[] };
    expect(findings.filter(({ outcome }) => outcome !== 'pass')).toEqual([]);
    expect(findings.map(({ name }) => name)).toEqual(refereeCases.map(({ name }) => name));
    expect(findings.find(({ name }) => name === 'log-probs-of-the-model')?.detail).toMatch(
      /one sequence 0;.* another 0$/,
    );
    expect({ code, err, report }).toMatchObject({
      code: 0,
      err: '',
      report: { type: 'probe-server', profile: 'drmas' },
    });
  });

  const keeps = { loadsFirst: false, tellsNorm: true, namesSnapshots: false } as const;
  const broken: readonly [Partial<FakeBehaviour>, string, RegExp][] = [
    [{ reduction: 'sequence-mean' }, 'weights-scale', /norm 1, expected 2/],
    [{ snapshots: 'live' }, 'snapshots-stay', /of the snapshot \S+, expected 0/],
    [{ seqIdIdempotent: false }, 'repeated-number', /norm 2, expected 1/],
    [{ reduction: 'token-mean' }, 'datums-add', /norm \S+, expected 3/],
    [{ forward: false }, 'forward', /404/],
    [{ losses: ['cross_entropy'] }, 'importance-sampling', /importance_sampling not supported/],
    [{ clipThresholds: false }, 'ppo-inside', /norm 0, expected 1\.64872/],
    [{ promptLogprobs: 'after-first' }, 'prompt-log-probs', /entries 5, expected 6/],
    [{ promptLogprobs: 'none' }, 'prompt-log-probs', /no log-probs of a prompt/],
    [{ loggedTemperature: 'sampling' }, 'sampled-log-probs-tempered', /forward pass \S+, expected 0/],
    [{ snapshots: 'rolled-back' }, 'sampling-leaves-training', /after sampling \S+, expected 0/],
    [{ emptyBatch: 'hang' }, 'empty-batch', /no answer/],
    [{ loadsFirst: true }, 'load-into-trained', /LoadWeights is not permitted/],
    [{ tellsNorm: false }, 'norm-predicts-the-fall', /norm of the gradient is not reported/],
    [{ tellsNorm: false, tellsLoss: false }, 'weights-scale', /neither the norm .* nor the loss/],
    [{ clipsGradients: false }, 'gradient-clipping', /fall \/ expected 0\.99\d*, expected 0\.25/],
    [{ namesSnapshots: true }, 'snapshot-without-a-name', /a path/],
    [{ stops: false }, 'stop-tokens', /not so: the tokens up to the stop token/],
    [{ unloads: false }, 'unloaded-models-are-gone', /404/],
    [{ sampler: 'cached' }, 'newer-snapshot', /of the newer snapshot \S+, expected 0/],
    [{ sampler: 'name-kept' }, 'snapshot-name-again', /of the second snapshot \S+, expected 0/],
    [{ sampler: 'behind' }, 'newer-snapshot-everywhere', /of the newer snapshot \S+, expected 0/],
    [{ sampler: 'mixed' }, 'two-adapters-at-once', /of its own adapter \S+, expected 0/],
    [{ sampler: 'scaled' }, 'snapshot-after-others', /after the others \S+, expected 0/],
  ];
  describe.each([
    ['daily', {}, broken.slice(0, 3)],
    ['slow', { tags: 'verify' }, broken.slice(3)],
  ] as const)('%s', (_, options, some) => {
    it.each(some)('finds %j by the case %s, with the numbers', options, async (changes, name, message) => {
      const [good, changed] = [await fakeOf('hosted', keeps), await fakeOf('hosted', { ...keeps, ...changes })];
      const only = { cases: [name], profile: 'drmas' } as const;
      const [{ findings: before }, { findings: after }] = [await judged(good, only), await judged(changed, only)];
      expect(before[0]?.outcome).toBe(name === 'empty-batch' ? 'differs' : 'pass');
      expect(after[0]).toMatchObject({ name, outcome: expect.stringMatching(/^(differs|refused|not offered)$/) });
      expect(after[0]?.detail).toMatch(message);
    });
  });

  /** A difference that a profile declares, and the words in which cases name it. */
  const facts: readonly (readonly [(profile: ServerProfile) => boolean, RegExp])[] = [
    [({ reduction }) => reduction !== 'sum', /^losses reduced by/],
    [({ negativeWeights }) => !negativeWeights, /^no negative weights/],
    [({ forward }) => !forward, /^no forward pass/],
    [({ native }) => !native.includes('ppo'), /^no ppo|^losses reduced by/],
    [({ promptLogprobs }) => promptLogprobs === 'after-first', /^N - 1/],
    [({ promptLogprobs }) => promptLogprobs === 'none', /^none/],
    [({ loggedTemperature }) => loggedTemperature !== 'one', /^log-probs at the temperature/],
    [({ snapshotIsolation }) => !snapshotIsolation, /^snapshots not isolated/],
    [({ seqIdIdempotent }) => !seqIdIdempotent, /^requests do not repeat/],
    [({ clipsGradients, forward }) => forward && !clipsGradients, /^`grad_clip_norm` ignored/],
  ];
  it.each(['hosted', 'skyrl-jax', 'skyrl-train', 'open-rl', 'twinkle'] as const)(
    'finds each difference that the profile %s declares, and none else in the core',
    { tags: 'verify' },
    async (behaves) => {
      const { findings, profile } = await judged(await fakeOf(behaves), { profile: behaves });
      expect(profile).toBe(behaves);
      expect(findings.filter(failing)).toEqual([]);
      const known = findings.flatMap(({ outcome, detail }) => (outcome === 'known difference' ? [detail] : []));
      const missed = facts.filter(([has, text]) => has(knownProfile(behaves)) && !known.some((one) => text.test(one)));
      expect(missed).toEqual([]);
    },
  );

  it('ends with 1 for a difference in the core, and prints the numbers for people', async () => {
    const url = await fakeOf('skyrl-jax');
    const words = ['doctor', 'server', url, '--case', 'weights-scale', '--case', 'training-learns'];
    expect(await drmas([...words, '--profile', 'skyrl-jax'])).toMatchObject({ code: 0 });
    const { code, out } = await drmas([...words, '--profile', 'hosted']);
    expect(out.replace(/in \d+ s/, 'in 0 s')).toBe(`losses
  differs           weights-scale *
                    norm 1, expected 2
optimiser
  pass              training-learns *
2 cases in 0 s, profile hosted: 1 pass, 1 differs; core cases (*) that fail:
weights-scale
`);
    expect(code).toBe(1);
  });

  it('measures the profile of a server that it is not told', { tags: 'verify' }, async () => {
    const { profile, findings } = await judged(await fakeOf('open-rl'), { cases: ['forward'] });
    expect({ profile, outcome: findings[0]?.outcome }).toEqual({ profile: 'open-rl', outcome: 'known difference' });
  });

  it('gives the places of its models back, also after a case that differs', async () => {
    const url = await fakeOf('skyrl-jax');
    await judged(url, { profile: 'hosted', cases: ['weights-scale', 'two-models', 'empty-batch'] });
    expect(fakes.at(-1)?.models).toBe(0);
  });

  it('begins no case after its time', async () => {
    const { findings } = await judged(ours.url, { apiKey: undefined, budgetSeconds: 0, profile: 'drmas' }).catch(() =>
      judged(fakes[0]?.url ?? '', { budgetSeconds: 0, profile: 'hosted' }),
    );
    expect(new Set(findings.map(({ outcome }) => outcome))).toEqual(new Set(['not run']));
  });

  it.each([
    [['ftp://x'], /^error: the server's address: expected the URL of a server/],
    [['http://127.0.0.1:9', '--case', 'none'], /--case: there is no case 'none'; the cases are forward, /],
    [['http://127.0.0.1:9', '--tolerance', '0'], /--tolerance: expected a number above 0, got 0/],
    [['http://127.0.0.1:9', '--profile', 'vllm'], /Allowed choices are auto, hosted/],
    [['http://127.0.0.1:9', '--reference', '/no/such'], /\/no\/such/],
  ])('refuses %j before it asks the server', async (words, message) => {
    const { code, out, err } = await drmas(['doctor', 'server', ...words]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });
});

describe('the measured profile', () => {
  const root = temporaryRoot();
  let directory = '';
  beforeAll(async () => {
    directory = await writeBaseModel(root);
  });

  const fakes: TinkerFake[] = [];
  afterAll(() => Promise.all(fakes.map((fake) => fake.close())));

  async function probed(behaves: FakeName, changes: FakeOptions['changes'] = {}) {
    const fake = await TinkerFake.start({ directory, behaves, changes });
    fakes.push(fake);
    const client = new TinkerClient({ url: fake.url, apiKey: undefined, timing: { ...defaultTiming, backOff: 0.01 } });
    const profile = await probeServer({ client, baseModel: directory, rank: 2 });
    client.close();
    return { profile, fake };
  }

  describe('the probe finds out what a server does', () => {
    it.each(['skyrl-jax', 'skyrl-train', 'open-rl'] as const)('%s', async (behaves) => {
      const { profile } = await probed(behaves);
      expect(profile).toEqual({ ...PROFILES[behaves], name: behaves } satisfies ServerProfile);
    });

    it('a server that tells losses and no norms', async () => {
      const { profile } = await probed('hosted');
      const { native, clipsGradients, ...rest } = PROFILES.hosted;
      expect(profile).toMatchObject({ name: 'hosted', ...rest });
      expect(profile.native).toEqual([]); // cannot be seen there, so it is not used
    });
  });
});
