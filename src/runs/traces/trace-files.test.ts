/** The forms in which exporters and people write several values into a file, and files that are damaged. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TaskError } from '@drmas/engine/errors';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { traceValues } from './trace-files.js';
import { UnreadCounts } from './unread.js';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'drmas-traces-'));
});
afterAll(() => rm(root, { recursive: true }));

const values = [
  { id: 'a', text: 'braces } ] and "quotes" \\ and \u2028', list: [1, { deep: [] }] },
  { id: 'b', text: 'two\nlines, [ and {', none: null, empty: {} },
  { id: 'ü', nested: { list: [{}, { id: 'c' }] } },
];
const lines = values.map((value) => JSON.stringify(value));
const pretty = values.map((value) => JSON.stringify(value, null, 2));
/** With indentation, but no line begins with white space. */
const flat = pretty.map((text) => text.replaceAll(/\n +/g, '\n'));

const forms: Readonly<Record<string, string>> = {
  'JSON lines': lines.join('\n'),
  'JSON lines with an end, and blank ones': `\n${lines.join('\n\n')}\n \n`,
  'JSON lines of Windows': `${lines.join('\r\n')}\r\n`,
  'JSON lines of an old Mac': lines.join('\r'),
  'a byte order mark': `\ufeff${lines.join('\n')}`,
  'two files, each with a byte order mark': `\ufeff${lines[0]}\n\ufeff${lines[1]}\n${lines[2]}`,
  'values on one line': lines.join(''),
  'values on one line, with spaces': lines.join(' '),
  'some values on one line': `${lines[0]}${lines[1]}\n${lines[2]}`,
  'lines with a comma at their ends': lines.map((line) => `${line},`).join('\n'),
  'lines with a comma at their beginnings': lines.join('\n,'),
  'records of RFC 7464': lines.map((line) => `\u001e${line}\n`).join(''),
  'an array': `[${lines.join(',')}]`,
  'an array with lines': `[\n${lines.join(',\n')}\n]\n`,
  'an array with a comma at its end': `[\n${lines.join(',\n')},\n]`,
  'an array of Windows with a byte order mark': `\ufeff[\r\n${lines.join(',\r\n')}\r\n]\r\n`,
  'an array on several lines': JSON.stringify(values, null, 2),
  'an array behind an array': `[${lines[0]}]\n[${lines[1]},${lines[2]}]`,
  'an array right behind an array': `[${lines[0]},\n${lines[1]}][${lines[2]}]`,
  'an array on several lines behind an array': `[\n${pretty[0]}\n]\n[\n${pretty[1]},\n${pretty[2]}\n]\n`,
  'arrays on several lines, with a comma between': `[\n${pretty[0]}\n],\n[\n${pretty[1]},\n${pretty[2]}\n]\n`,
  'arrays with byte order marks': `\ufeff[\n${lines[0]},\n${lines[1]}]\r\n\ufeff[\n${lines[2]}]`,
  'arrays, some of them empty': `[]\n[\n${pretty[0]}\n]\n[]\n[\n${pretty[1]},\n${pretty[2]}\n]\n[\n]`,
  'lines behind an array': `[\n${lines[0]}\n]\n${lines[1]}\n${lines[2]}\n`,
  'a line that goes on behind an array': `[\n${lines[0]}\n]${lines[1]},\n${lines[2]},\n`,
  'an array on several lines behind lines': `${lines[0]}\n[\n${pretty[1]},\n${pretty[2]}\n]\n`,
  'an array on several lines behind a value': `${pretty[0]}\n[\n${pretty[1]},\n${pretty[2]}\n]\n`,
  'values on several lines': pretty.join('\n'),
  'values on several lines, with commas': pretty.join(',\n'),
  'values on several lines, of Windows': pretty.join('\n').replaceAll('\n', '\r\n'),
  'values on several lines, with tabs': values.map((value) => JSON.stringify(value, null, '\t')).join('\n'),
  'values on several lines without indentation': flat.join('\n'),
  'values on several lines, each behind the last one': pretty.join(''),
  'a value on a line, then others on several lines': `${lines[0]}\n${pretty[1]}\n${flat[2]}`,
};

async function read(text: string) {
  const file = join(root, 'file.json');
  await writeFile(file, text);
  const unread = new UnreadCounts();
  const found: unknown[] = [];
  for await (const { value } of traceValues(file, unread)) found.push(...(Array.isArray(value) ? value : [value]));
  return { found, unread: unread.all };
}

describe('values of a file', () => {
  it.each(Object.entries(forms))('are read from %s', async (_, text) => {
    expect(await read(text)).toEqual({ found: values, unread: {} });
  });

  const damages: Readonly<Record<string, (text: string) => string>> = {
    'a first value without its end': (text) => text.replace('}]}', ''),
    'a value in the middle without its end': (text) => text.replace(',"none":null,"empty":{}}', ''),
    'a last value without its end': (text) => text.replace(/[}\]][^}\]]*$/, ''),
    'a word between': (text) => text.replace('\n', '\noops\n'),
    'a text without its end': (text) => text.replace('lines, [ and {"', 'lines'),
    'a bracket too many': (text) => text.replace('null', 'null]'),
  };
  const damaged = Object.entries(damages).flatMap(([damage, change]) =>
    Object.entries(forms).map(([form, text]) => [form, damage, change(text), text] as const),
  );
  it.each(damaged.filter(([, , after, before]) => after !== before))('%s: counts %s', async (_, __, text) => {
    const result = await read(text).catch((error: unknown) => error);
    if (result instanceof TaskError) expect(result.message).toMatch(/file\.json:\d+/);
    else expect((result as Awaited<ReturnType<typeof read>>).unread.line?.count).toBeGreaterThan(0);
  });

  it.each(['JSON lines', 'JSON lines of Windows', 'values on several lines'])(
    'are read around one without its end: %s',
    async (form) => {
      const { found, unread } = await read((forms[form] ?? '').replace(/,\s*"none": ?null,\s*"empty": ?\{\}\s*\}/, ''));
      expect([found, unread.line?.count]).toEqual([[values[0], values[2]], expect.any(Number)]);
    },
  );
});

it('are read from values of many escapes, which follow each other on a line', async () => {
  const long = JSON.stringify({ text: '\n"{'.repeat(1e6) });
  const { found, unread } = await read(`${long}${long}`);
  expect([found.length, unread]).toEqual([2, {}]);
});
