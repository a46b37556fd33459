/** JSON as Python reads and writes it: whole numbers of any size, `5.0` beside `5`, and keys in their order. */
import type { Budget } from './budget.js';
import { floatText } from './python-text.js';
import { compare, isList, isMap, Tuple, truthy, typeName, type Value } from './values.js';

const TOKEN = /[ \t\n\r]*(?:("(?:[^"\\]|\\.)*")|(-?\d+)(\.\d+)?([eE][+-]?\d+)?|(true|false|null)|([{}[\],:]))/y;

/**
 * Reads JSON that `JSON.parse` accepts as values of a template.
 * @throws SyntaxError for other texts
 */
export function readJson(text: string): Value {
  JSON.parse(text);
  TOKEN.lastIndex = 0;
  const next = () => TOKEN.exec(text) ?? [];
  const read = ([, string, whole, fraction, exponent, word, bracket]: readonly (string | undefined)[]): Value => {
    if (string !== undefined) return JSON.parse(string);
    if (whole !== undefined) {
      const isFloat = fraction !== undefined || exponent !== undefined;
      return isFloat ? Number(whole + (fraction ?? '') + (exponent ?? '')) : BigInt(whole);
    }
    if (word !== undefined) return word === 'null' ? null : word === 'true';
    return bracket === '{' ? object() : list();
  };
  const list = (): Value => {
    const items: Value[] = [];
    for (let token = next(); token[6] !== ']'; token = next()) if (token[6] !== ',') items.push(read(token));
    return items;
  };
  const object = (): Value => {
    const entries = new Map<Value, Value>();
    for (let token = next(); token[6] !== '}'; token = next()) {
      if (token[6] === ',') continue;
      const key: string = JSON.parse(token[1] ?? '""');
      next();
      entries.set(key, read(next()));
    }
    return entries;
  };
  return read(next());
}

interface Style {
  readonly ascii: boolean;
  readonly indent: string | undefined;
  readonly item: string;
  readonly colon: string;
  readonly sorted: boolean;
}

/** The settings of `json.dumps` as the filter `tojson` of transformers takes them. */
export function jsonStyle(values: (name: string) => Value): Style {
  const indent = values('indent');
  const isNumber = typeof indent === 'bigint' || typeof indent === 'boolean';
  const space = isNumber ? ' '.repeat(Math.max(0, Number(indent))) : indent;
  if (space !== undefined && space !== null && typeof space !== 'string')
    throw new Error(`tojson(indent=...): expected a number or a text, got ${typeName(indent)}`);
  const separators = values('separators');
  const [item, colon] = separators instanceof Tuple ? separators.items : isList(separators) ? separators : [];
  if (separators !== undefined && separators !== null && (typeof item !== 'string' || typeof colon !== 'string'))
    throw new Error('tojson(separators=...): expected two texts');
  return {
    ascii: truthy(values('ensure_ascii')),
    indent: space ?? undefined,
    item: typeof item === 'string' ? item : typeof space === 'string' ? ',' : ', ',
    colon: typeof colon === 'string' ? colon : ': ',
    sorted: truthy(values('sort_keys')),
  };
}

/** Python's `json.dumps`. @throws Error for a value that JSON cannot express */
export function writeJson(value: Value, style: Style, budget: Budget, depth = 0): string {
  budget.spend(1);
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return jsonFloat(value);
  if (typeof value === 'string') return budget.text(jsonString(value, style.ascii));
  const inner = style.indent === undefined ? '' : `\n${style.indent.repeat(depth + 1)}`;
  const block = (open: string, parts: readonly string[], close: string) => {
    if (parts.length === 0) return open + close;
    budget.length(parts.reduce((sum, { length }) => sum + length + inner.length + style.item.length, 0));
    const end = style.indent === undefined ? '' : `\n${style.indent.repeat(depth)}`;
    return open + inner + parts.join(style.item + inner) + end + close;
  };
  const items = value instanceof Tuple ? value.items : value;
  if (isList(items)) {
    return block(
      '[',
      items.map((item) => writeJson(item, style, budget, depth + 1)),
      ']',
    );
  }
  if (!isMap(items)) throw new Error(`Object of type ${typeName(value)} is not JSON serializable`);
  const entries = [...items];
  if (style.sorted) entries.sort(([a], [b]) => compare(a, b, budget));
  const parts = entries.map(([key, item]) => {
    const name = budget.text(jsonString(keyText(key), style.ascii));
    return name + style.colon + writeJson(item, style, budget, depth + 1);
  });
  return block('{', parts, '}');
}

function keyText(key: Value): string {
  if (typeof key === 'string') return key;
  if (key === null || typeof key === 'boolean' || typeof key === 'bigint') return String(key);
  if (typeof key === 'number') return jsonFloat(key);
  throw new Error(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  return Number.isFinite(value) ? floatText(value) : value > 0 ? 'Infinity' : '-Infinity';
}

/** A text as `json.dumps` writes it. Without `ascii` halves of surrogate pairs stay, which `JSON.stringify` escapes. */
function jsonString(text: string, ascii: boolean): string {
  if (!ascii) return `"${text.replace(/[^\ud800-\udfff]+/gu, (part) => JSON.stringify(part).slice(1, -1))}"`;
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(text).replace(/[\x7f-\uffff]/g, escaped);
}
