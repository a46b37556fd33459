import { describe, expect, it } from 'vitest';
import { processorSeconds } from '../../../test/support/time-and-chance.js';
import { gitleaksRules } from './gitleaks-rules.js';
import { NAMES, redaction } from './redact.js';

/** Letters and digits without a pattern, as keys have them. */
const mixed = 'q7Xw2Lm9Tz4Rk8Vb3Nc6Yd1Hf5Jg0PsAeUiOoZtMnBvKxWqLrDhGyCjFpSaEuI2k4j6h8g0';
const some = (length: number, from = 0) => (mixed + mixed + mixed).slice(from, from + length);
const hex = (length: number) => '3f9a1c07be5d42860a7fe9c1d3b5826447ad0f13ce8b6952'.repeat(3).slice(0, length);
const capitals = (length: number) => 'Q7XW2LM5TZ4RKVB3NC6YDHFJGPSAEUIO'.repeat(3).slice(0, length);
const digits = (length: number) => '739150284617395028461'.slice(0, length);

/** Texts with a secret or a personal detail; the second value is what must not stay. */
const forms: readonly (readonly [kind: string, text: string, secret: string])[] = [
  ...(
    [
      ['OpenAI', `sk-${some(48)}`],
      ['OpenAI project', `sk-proj-${some(60)}`],
      ['Anthropic', `sk-ant-api03-${some(93)}AA`],
      ['Groq', `gsk_${some(52)}`],
      ['xAI', `xai-${some(80)}`],
      ['Perplexity', `pplx-${some(48)}`],
      ['Replicate', `r8_${some(37)}`],
      ['Hugging Face', `hf_${'AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh'}`],
      ['AWS', `AKIA${capitals(16)}`],
      ['AWS, temporary', `ASIA${capitals(16)}`],
      ['Google', `AIza${some(35)}`],
      ['Google OAuth', `ya29.${some(60)}`],
      ['GitHub', `ghp_${some(36)}`],
      ['GitHub, fine-grained', `github_pat_${some(22)}_${some(59)}`],
      ['GitLab', `glpat-${some(20)}`],
      ['npm', `npm_${some(36)}`],
      ['PyPI', `pypi-AgEIcHlwaS5vcmc${some(70)}`],
      ['Docker', `dckr_pat_${some(27)}`],
      ['Slack bot', `xoxb-${digits(12)}-${digits(12)}-${some(24)}`],
      ['Slack app', `xapp-1-${capitals(11)}-${digits(12)}-${hex(64)}`],
      ['Slack webhook', `https://hooks.slack.com/services/T${capitals(10)}/B${capitals(10)}/${some(24)}`],
      ['SendGrid', `SG.${some(22)}.${some(43)}`],
      ['Stripe', `sk_live_${some(24)}`],
      ['Stripe webhook', `whsec_${some(32)}`],
      ['Twilio', `SK${hex(32)}`],
      ['Vault', `hvs.${some(95)}`],
      ['Databricks', `dapi${hex(32)}`],
      ['DigitalOcean', `dop_v1_${hex(64)}`],
      ['Linear', `lin_api_${some(40)}`],
      ['Shopify', `shpat_${hex(32)}`],
      ['Notion', `secret_${some(43)}`],
      ['Telegram', `telegram bot ${digits(10)}:A${some(34)}`, `A${some(34)}`],
      ['Discord', `discord token = "${hex(64)}"`, hex(64)],
      ['Azure SAS', `https://a.blob.core.windows.net/c?sv=2024&sig=${some(43)}%3D`, some(43)],
      ['Postman', `PMAK-${hex(24)}-${hex(34)}`],
      ['Grafana', `glsa_${some(32)}_${hex(8)}`],
      ['Figma or other under a name', `FIGMA_TOKEN=figd_${some(40)}`, some(40)],
      ['Square', `sq0atp-${some(22)}`],
      ['Pulumi', `pul-${hex(40)}`],
      ['age', `AGE-SECRET-KEY-1${'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L'.repeat(2).slice(0, 58)}`],
      ['Figma', `figd_${some(40)}`],
      ['Supabase', `sbp_${hex(40)}`],
      ['LangSmith', `lsv2_pt_${hex(32)}_${hex(10)}`],
      ['Sentry', `sntrys_${some(100)}`],
      ['New Relic', `NRAK-${capitals(27)}`],
      ['Mailgun', `key-${hex(32)}`],
      ['Airtable', `pat${some(14)}.${hex(64)}`],
      ['Tinker', `tml-${some(32)}`],
      ['Fireworks', `fw_${some(24)}`],
      ['NVIDIA', `nvapi-${some(60)}`],
      ['Tavily', `tvly-dev-${some(32)}`],
      ['Cerebras', `csk-${some(48)}`],
      ['E2B', `e2b_${hex(40)}`],
      ['Vercel', `vercel_blob_rw_${some(16)}_${some(30)}`],
      ['Firecrawl', `fc-${hex(32)}`],
      ['a key of Azure', `Ocp-Apim-Subscription-Key: ${hex(32)}`, hex(32)],
      ['another scheme', `Authorization: ApiKey ${some(20)}`, some(20)],
      ['another scheme in JSON', `{"authorization": "Token ${some(20)}"}`, some(20)],
      ['a flag', 'deploy --password hunter22 --yes', 'hunter22'],
      ['a flag with quotes', `deploy --gateway-api-key "${some(20)}"`, some(20)],
      ['npmrc', '_auth=YW5uOmh1bnRlcjI=', 'YW5uOmh1bnRlcjI'],
      ['basic authentication', "basicAuth: 'admin:hunter'", 'hunter'],
      ['credentials', "userCredential: '62940aab-b9f9-49e3-a2ed-884f5fc64d7e'", '884f5fc64d7e'],
      ['a variable of .NET', '"Jwt__Token" = "SomeTokenXyzabc"', 'Xyzabc'],
      ['a service that no rule knows', `zzq_${some(40)}`],
      ['Discord webhook', `https://discord.com/api/webhooks/${digits(18)}/${some(68)}`, some(68)],
      ['Discord bot', `M${some(23)}.${some(6)}.${some(38)}`],
      ['sshpass', 'sshpass -p hunter2 ssh ann@host', 'hunter2'],
      ['netrc', 'machine a.example login ann password hunter2', 'hunter2'],
      ['XML', '<password>hunter2</password>', 'hunter2'],
      ['Kubernetes', `client-key-data: ${some(60)}`, some(60)],
      ['Docker', '{"auths":{"a.example":{"auth":"YW5uOmh1bnRlcjI="}}}', 'YW5uOmh1bnRlcjI'],
      ['a variable of the shell', 'export DB_PASS=hunter2', 'hunter2'],
      ['MAC with dots', '001b.4411.3ab7', '4411'],
      ['a token of JSON', `eyJhbGciOiJIUzI1NiJ9.${some(40)}.${some(43)}`],
      ['a private key', `-----BEGIN PRIVATE KEY-----\n${some(64)}\n-----END PRIVATE KEY-----`, some(64)],
      ['bearer', `Authorization: Bearer ${some(32)}`, some(32)],
      ['basic', 'Authorization: Basic dXNlcjpwYXNz', 'dXNlcjpwYXNz'],
      ['cookie', 'Cookie: session=ann-17; theme=dark', 'ann-17'],
      ['a new cookie', 'Set-Cookie: sid=ann-17-of-may; HttpOnly', 'ann-17'],
      ['cookie in JSON', '{"cookie": "session=ann-17-of-may"}', 'ann-17'],
      ['address with a password', 'postgres://ann:hunter2@db.example/x', 'hunter2'],
      ['curl', 'curl -s -u ann:hunter2 https://a.example', 'hunter2'],
      ['mysql', 'mysql -u root -phunter2 shop', 'hunter2'],
      ['YAML', 'password: |\n  hunter2hunter2\nnext: 1', 'hunter2'],
      ['password', 'password=hunter2hunter2', 'hunter2'],
      ['German', 'Passwort: hunter2hunter2', 'hunter2'],
      ['German, other word', 'Kennwort = hunter2hunter2', 'hunter2'],
      ['French', 'mot de passe : hunter2hunter2', 'hunter2'],
      ['Spanish', 'contraseña: hunter2hunter2', 'hunter2'],
      ['Russian', 'пароль: hunter2hunter2', 'hunter2'],
      ['Chinese', '密码: hunter2hunter2', 'hunter2'],
      ['e-mail', 'ann@example.com', 'ann@'],
      ['e-mail of other letters', 'jürgen@müller.de', 'rgen@'],
      ['e-mail with a sign of no width', 'ann\u200b@example.com', 'example'],
      ['e-mail with a wide @', 'ann＠example.com', 'example'],
      ['e-mail with quotes', '"ann.b"@example.com', 'ann.b'],
      ['card', '4111 1111 1111 1111', '4111'],
      ['card with dots', '4111.1111.1111.1111', '4111'],
      ['card with hard spaces', '4111\u00a01111\u00a01111\u00a01111', '4111'],
      ['IBAN', 'DE89 3704 0044 0532 0130 00', '3704'],
      ['IBAN in small letters', 'de89370400440532013000', '3704'],
      ['IPv4', '192.168.7.31', '168.7'],
      ['IPv6', '2001:db8:85a3::8a2e:370:7334', '85a3'],
      ['MAC', '00:1a:2b:3c:4d:5e', '2b:3c'],
      ['US social security number', '536-90-4399', '4399'],
      ['telephone', '+49 170 1234567', '1234567'],
    ] as const
  ).map(([kind, text, secret]) => [kind, text, secret ?? text.slice(6)] as const),
];

describe('a redaction', () => {
  it.each(forms)('masks %s, in a sentence and in a text of JSON', (_, text, secret) => {
    for (const around of [text, `He said: ${text}, and left.`, JSON.stringify({ note: `See ${text}.` })]) {
      const stored = JSON.stringify(redaction({})({ text: around }, NAMES));
      expect(stored, around).not.toContain(secret);
      expect(stored).toMatch(/\[[\w -]+\]/);
    }
  });

  it.each([
    'It was 12:30:45, and the ratio 1:2:3:4:5:6 and std::vector<int> were fine.',
    'See sections 1.2.3 and 2024-11-27, order 123-456-7890, versions 10.20.30 and v1.2.3-beta.4.',
    'The cookie jar: full of biscuits and milk.',
    'Use --token to log in, --password takes a file, --max-tokens 4096 and --tokens 12345678 limit it.',
    'Authorization: required for all of v2. Credentials: bring your passport. Basic auth: see page 12.',
    'commit 3f9a1c07be5d42860a7fe9c1d3b5826447ad0f13 and 550e8400-e29b-41d4-a716-446655440000',
    'Run `npm install @types/node@20` and `git clone git@host:ann/x`.',
    'curl -u is a flag; mysql -p asks. mysql -u root --port 3306',
    'At 5 pm @ann wrote to @bob: a@b is no address, sk-learn and r8_x neither.',
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk',
    '{"id":"call_q7Xw2Lm9Tz4Rk8Vb3Nc6Yd1H","name":"price","arguments":{"of":"fig"}}',
  ])('leaves other texts as they are: %s', (text) => {
    expect(redaction({})({ text }, NAMES)).toEqual({ text });
  });
});

describe('the rules of gitleaks', () => {
  it.each(gitleaksRules.map(([name, , words]) => [name, words.split(' ')[0] as string] as const))(
    'read hostile texts in time that grows with their length: %s',
    { tags: 'verify' },
    async (_, word) => {
      const texts = [word, `${word}=`, `${word}.`, `${word}="`].flatMap((piece) => [
        piece.repeat(1e5 / piece.length),
        ...[' ', 'a', '=', '\n', '1a-', "'a:"].map((more) => piece + more.repeat(1e5 / more.length)),
      ]);
      const seconds = await processorSeconds(() => {
        for (const text of texts) redaction({})({ text }, NAMES);
      });
      expect(seconds).toBeLessThan(texts.length * 0.2);
    },
  );
});
