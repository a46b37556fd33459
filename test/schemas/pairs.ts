/** Random JSON schemas with values, small enough that about half of the values fit. */

import { exactJson, NumberText } from '@drmas/engine/errors';
import fc from 'fast-check';

/** Texts, since JSON.parse rounds integers above 2^53. */
export interface Pair {
  readonly schema: string;
  readonly value: string;
}

type Schema = Readonly<Record<string, unknown>>;

const names = fc.constantFrom('a', 'b', 'c');
const texts = fc.constantFrom('', 'a', 'ab', 'abc', 'é', '😀', '7', '2026-11-27');
/** Numbers that a double rounds, or nearly: integers around 2^53, and other spellings. */
const written = fc
  .constantFrom(
    ...['9007199254740992', '9007199254740993', '9007199254740994', '-9007199254740993', '27021597764222979'],
    ...['9007199254740992.0', '1e16', '10000000000000001', '1e400', '-0', '0.0', '2.0', '0.5000000000000000001'],
  )
  .map((digits) => new NumberText(digits));
const numbers = fc.oneof(
  { arbitrary: fc.integer({ min: -3, max: 6 }), weight: 3 },
  { arbitrary: fc.constantFrom(0.5, 1.5, -2.25, 1e30), weight: 2 },
  { arbitrary: written, weight: 2 },
);
const scalars = fc.oneof(texts, numbers, fc.boolean(), fc.constant(null));

const { value: values } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { arbitrary: scalars, weight: 3 },
    { arbitrary: fc.array(tie('value'), { maxLength: 3 }), weight: 1 },
    { arbitrary: fc.dictionary(names, tie('value'), { maxKeys: 3 }), weight: 3 },
  ),
}));

const types = fc.constantFrom('null', 'boolean', 'number', 'integer', 'string', 'array', 'object');
const sizes = fc.integer({ min: 0, max: 3 });
const nameLists = fc.uniqueArray(names, { maxLength: 2 });
const patterns = fc.constantFrom('a', '^a', 'b$', '^[a-c]+$', '^\\d{4}-\\d\\d-\\d\\d$', '^.$', '^(a|b)*c?$');

/** Operands of a keyword, made of schemas of less depth. */
type Operands = (schema: fc.Arbitrary<unknown>) => fc.Arbitrary<unknown>;
const only =
  (arbitrary: fc.Arbitrary<unknown>): Operands =>
  () =>
    arbitrary;
const one: Operands = (schema) => schema;
const some: Operands = (schema) => fc.array(schema, { minLength: 1, maxLength: 3 });
const byName: Operands = (schema) => fc.dictionary(names, schema, { maxKeys: 3 });

/** The operands of each keyword; `$ref` has a row of its own below. */
const operands: Readonly<Record<string, Operands>> = {
  type: only(fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 }))),
  enum: only(fc.array(values, { minLength: 1, maxLength: 4 })),
  const: only(values),
  minimum: only(numbers),
  maximum: only(numbers),
  exclusiveMinimum: only(numbers),
  exclusiveMaximum: only(numbers),
  multipleOf: only(fc.constantFrom(1, 2, 0.5, 3, new NumberText('9007199254740993'))),
  minLength: only(sizes),
  maxLength: only(sizes),
  pattern: only(patterns),
  minItems: only(sizes),
  maxItems: only(sizes),
  uniqueItems: only(fc.boolean()),
  prefixItems: some,
  items: one,
  contains: one,
  minProperties: only(sizes),
  maxProperties: only(sizes),
  required: only(nameLists),
  properties: byName,
  patternProperties: (schema) => fc.dictionary(fc.constantFrom('a', '^b', '[bc]', 'c$'), schema, { maxKeys: 2 }),
  additionalProperties: one,
  propertyNames: one,
  dependentRequired: only(fc.dictionary(names, nameLists, { maxKeys: 2 })),
  dependentSchemas: byName,
  allOf: some,
  anyOf: some,
  oneOf: some,
  not: one,
  if: one,
};

/** Words that other keywords read. */
const companions: Readonly<Record<string, Operands>> = Object.fromEntries([
  ...['then', 'else'].map((name) => [name, one]),
  ...['minContains', 'maxContains'].map((name) => [name, only(sizes)]),
]);
/** Keywords whose form draft 7 spells otherwise. */
const ofDraft7: Readonly<Record<string, Operands>> = {
  items: some,
  additionalItems: one,
  dependencies: (schema) => fc.dictionary(names, fc.oneof(nameLists, schema), { maxKeys: 2 }),
};
const NOT_OF_DRAFT_7 = ['prefixItems', 'dependentRequired', 'dependentSchemas', 'minContains', 'maxContains'];

/** The keywords of the pairs, and one for each way to name a schema. */
export const paired: ReadonlySet<string> = new Set([...Object.keys(operands), ...Object.keys(ofDraft7), '$ref']);

function schemasOf(rows: Readonly<Record<string, Operands>>, definitions: string): fc.Arbitrary<Schema> {
  const definitionNames = ['x', 'y/~z', 'ü'];
  const pointers = definitionNames.map((name) => {
    const escaped = encodeURIComponent(name.replaceAll('~', '~0').replaceAll('/', '~1'));
    return `#/${definitions}/${escaped}`;
  });
  const layer = (inner: fc.Arbitrary<unknown>): fc.Arbitrary<Record<string, unknown>> =>
    fc
      .subarray(Object.keys(rows), { minLength: 1, maxLength: 3 })
      .chain((chosen) =>
        fc.record(Object.fromEntries(chosen.map((name) => [name, rows[name]?.(inner) ?? fc.constant(true)]))),
      );
  const leaf = fc.oneof(fc.boolean(), layer(fc.boolean()));
  const reference = fc.constantFrom(...pointers).map(($ref) => ({ $ref }));
  const referring = fc.oneof({ arbitrary: reference, weight: 1 }, { arbitrary: leaf, weight: 4 });
  const middle = fc.oneof({ arbitrary: layer(referring), weight: 3 }, { arbitrary: referring, weight: 2 });
  /** Only the outermost schema refers to definitions through a property, so no check goes round for ever. */
  const defined = fc.record(Object.fromEntries(definitionNames.map((name) => [name, leaf])));
  return fc.tuple(layer(middle), defined).map(([schema, named]) => ({ ...schema, [definitions]: named }));
}

const modern = { ...operands, ...companions };
const older = { ...modern, ...ofDraft7 };
const draft7 = Object.fromEntries(Object.entries(older).filter(([name]) => !NOT_OF_DRAFT_7.includes(name)));

const schemas = fc.oneof(
  { arbitrary: schemasOf(modern, '$defs'), weight: 3 },
  { arbitrary: schemasOf(modern, 'definitions'), weight: 1 },
  {
    arbitrary: schemasOf(draft7, 'definitions').map((schema) => ({
      $schema: 'http://json-schema.org/draft-07/schema#',
      ...schema,
    })),
    weight: 1,
  },
);

/** Addresses of documents and of the schemas in them, and references to these, to anchors and to places. */
const documents = fc.constantFrom('https://example.com/root.json', 'https://example.com/sub/', 'root.json', 'urn:a:b');
const ids = fc.constantFrom(
  'x',
  'sub/x',
  './x',
  '../x',
  '/x',
  'https://other.example/x',
  'sub/',
  'x#',
  '//x/y',
  'urn:c',
);
/** Of a schema between the document and a reference. Two schemas of one address would be ambiguous. */
const betweens = fc.constantFrom('y', 'deep/y', '/y/', 'https://example.com/z/', 'urn:d');
const references = fc.oneof(
  ids,
  betweens,
  fc.constantFrom('#in', '#out', '#/$defs/in', '#/$defs/out', '#', 'root.json#out', 'root.json'),
  fc.tuple(ids, fc.constantFrom('#in', '#/$defs/in', '#')).map(([id, place]) => id.replace('#', '') + place),
  fc.constantFrom('https://example.com/root.json#/$defs/out', 'https://example.com/x', 'https://example.com/sub/x#in'),
);

/** Schemas whose parts have addresses of their own, from which their references start. */
const addressed = fc.boolean().chain((isOld) => {
  const [table, draft] = isOld
    ? ['definitions', { $schema: 'http://json-schema.org/draft-07/schema#' }]
    : ['$defs', {}];
  const anchor = (name: string) => (isOld ? { $id: `#${name}` } : { $anchor: name });
  const place = (reference: string) => reference.replace('$defs', table);
  const type = types.map((one) => ({ type: one }));
  const optional = (id: fc.Arbitrary<string>) =>
    fc.option(id, { nil: undefined }).map(($id) => ($id === undefined ? {} : { $id }));
  const referring = references.map((reference) => ({ $ref: place(reference) }));
  const part = fc
    .tuple(optional(ids), type, fc.constantFrom('#in', '#/$defs/in'), fc.boolean(), type)
    .map(([id, inner, reference, isApart, own]) => ({
      ...id,
      [table]: { in: { ...anchor('in'), ...inner } },
      ...(isApart ? { anyOf: [{ $ref: place(reference) }, own] } : own),
    }));
  return fc
    .tuple(optional(documents), part, type, optional(betweens), fc.tuple(referring, referring, referring), values)
    .map(([id, out, plain, between, [a, b, c], value]) => ({
      ...draft,
      ...id,
      [table]: { part: out, out: { ...anchor('out'), ...plain }, other: { [table]: { in: plain } } },
      properties: { a, b: { ...between, properties: { a: b }, items: c }, c: { const: value, default: { $id: 'x' } } },
      additionalProperties: c,
    }));
});

/** The same pairs for the same seed. */
export function randomPairs(count: number, seed: number): Pair[] {
  const all = fc.oneof({ arbitrary: schemas, weight: 4 }, { arbitrary: addressed, weight: 1 });
  const pairs = fc.tuple(all, values).map(([schema, value]) => ({
    schema: exactJson(schema),
    value: exactJson(value),
  }));
  return fc.sample(pairs, { numRuns: count, seed });
}
