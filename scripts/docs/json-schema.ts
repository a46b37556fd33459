/** The values that a setting accepts, read from its schema: the part of JSON Schema that zod writes for recipes. */
import { z } from 'zod';

export interface Node {
  readonly type?: string | undefined;
  readonly description?: string | undefined;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[] | undefined;
  readonly oneOf?: readonly Node[] | undefined;
  readonly anyOf?: readonly Node[] | undefined;
  readonly items?: Node | undefined;
  /** The members of a tuple. */
  readonly prefixItems?: readonly Node[] | undefined;
  readonly properties?: Readonly<Record<string, Node>> | undefined;
  readonly required?: readonly string[] | undefined;
  readonly additionalProperties?: Node | boolean | undefined;
  readonly minimum?: number | undefined;
  readonly exclusiveMinimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly exclusiveMaximum?: number | undefined;
  readonly minItems?: number | undefined;
  readonly $ref?: string | undefined;
}

/** The schema as a user writes values for it: before defaults are filled in and texts are transformed. */
export function inputNode(schema: z.ZodType): Node {
  return z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Node;
}

/** The members of a union; a value that is not a union is its only member. */
export const members = (node: Node): readonly Node[] => node.oneOf ?? node.anyOf ?? [node];

/** The value of a member's `type`, if `type` distinguishes the members of the union. */
export function typeOf(node: Node): string | undefined {
  const type = node.properties?.type?.const;
  return typeof type === 'string' ? type : undefined;
}

/** The member of a union with this `type`. */
export function member(node: Node, type: string): Node {
  const one = members(node).find((each) => typeOf(each) === type);
  if (one === undefined) throw new Error(`no member of the union has type '${type}'`);
  return one;
}

/** Whether `type` distinguishes the members of a union. */
export const isUnionByType = (node: Node) =>
  members(node).length > 1 && members(node).every((member) => typeOf(member));

const isObject = (node: Node) => node.properties !== undefined;

/** Whether a node has keys of its own, so that settings below it have paths. */
export const isSection = (node: Node) => members(node).every(isObject);

/** The type and range of a value in words: `integer >= 1`, `one of ...`. */
export function rangeText(node: Node): string {
  if (members(node).length > 1)
    return isUnionByType(node)
      ? `by \`type\`: ${members(node)
          .map((member) => `\`${typeOf(member)}\``)
          .join(', ')}`
      : members(node).map(rangeText).join(', or ');
  if (node.const !== undefined) return `\`${String(node.const)}\``;
  if (node.enum !== undefined) return node.enum.map((value) => `\`${String(value)}\``).join(', ');
  if (node.prefixItems !== undefined) return `[${node.prefixItems.map(rangeText).join('; ')}]`;
  if (node.items !== undefined) return `list of: ${rangeText(node.items)}`;
  if (node.type === 'object') return isObject(node) ? 'the keys below' : 'map from names to values';
  if (node.type === 'string') return 'text';
  if (node.type === 'null') return '`null`';
  if (node.type === 'boolean') return '`true`, `false`';
  if (node.type !== 'integer' && node.type !== 'number') return 'a function';
  return [node.type, ...bounds(node)]
    .join(' ')
    .replace(/ (?=[<>])/, ' ')
    .trim();
}

function bounds({ minimum, exclusiveMinimum, maximum, exclusiveMaximum }: Node): string[] {
  const low = exclusiveMinimum !== undefined ? `> ${exclusiveMinimum}` : minimum !== undefined ? `>= ${minimum}` : '';
  // Zod writes the largest safe integer if an integer has no other limit.
  const top = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  const high = exclusiveMaximum !== undefined ? `< ${exclusiveMaximum}` : top !== undefined ? `<= ${top}` : '';
  return [[low, high].filter((bound) => bound !== '').join(', ')];
}

/**
 * A default as a user would write it; for a union, its `type`. Empty if there is none, or if the keys below have
 * defaults.
 */
export function defaultText({ default: value }: Node): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return `\`${value}\``;
  const { type = undefined, ...rest } =
    typeof value === 'object' && value !== null ? ({ ...value } as { type?: unknown }) : {};
  if (type !== undefined && Object.keys(rest).length === 0) return `\`${String(type)}\``;
  return `\`${JSON.stringify(value)}\``;
}
