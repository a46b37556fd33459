/** Chat templates for base models, which have none: a named one, or a template that a user writes. */
import { messageOf, TokenizerError } from '../../errors.js';
import { strftime } from '../jinja/strftime.js';
import { chatTemplate } from './chat-template.js';

interface NamedTemplate {
  readonly source: string;
  /** Default: the model's own end of text. */
  readonly end?: string;
}

/**
 * The template `plain` needs no token beyond the model's own; each of the others belongs to a family of models. Line
 * breaks stand in expressions, since Jinja drops a line break after a statement.
 */
const templates = {
  plain: {
    source:
      '{% if bos_token %}{{ bos_token }}{% endif %}{% for message in messages %}' +
      "{{ message['role'] | capitalize + ':\\n' + message['content'] }}" +
      "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{{ '\\n\\n' }}{% endfor %}" +
      "{% if add_generation_prompt %}{{ 'Assistant:\\n' }}{% endif %}",
  },
  chatml: {
    source:
      "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}" +
      "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    end: '<|im_end|>',
  },
  llama3: {
    source:
      "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'" +
      " + message['content'] + '<|eot_id|>' }}{% endfor %}" +
      "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
    end: '<|eot_id|>',
  },
} satisfies Readonly<Record<string, NamedTemplate>>;

export const TEMPLATE_NAMES = Object.keys(templates) as (keyof typeof templates)[];

/** Values of a template's variables, such as `{ enable_thinking: false }`. */
export type TemplateVariables = Readonly<Record<string, boolean | number | string>>;

/** Statements at a template's beginning that set variables. The expression keeps a line break that follows. */
const settings = /^(?:\{% set \w+ = (?:true|false|-?[\d.e+-]+|"[^"\\%{}]*") %\})+\{\{ '' \}\}/;

/**
 * A template that sets variables first, so that they stay with it wherever it is written. Statements alone stand for
 * the model's own template with these variables.
 */
export function chatTemplateWith(spec: {
  readonly chatTemplate?: string | undefined;
  readonly variables?: TemplateVariables | undefined;
}): string | undefined {
  const values = Object.entries(spec.variables ?? {});
  if (values.length === 0) return spec.chatTemplate;
  const statements = values.map(([name, value]) => `{% set ${name} = ${JSON.stringify(value)} %}`);
  return `${statements.join('')}{{ '' }}${spec.chatTemplate ?? ''}`;
}

/** The statements of `chatTemplateWith` at a template's beginning, and the template after them. */
export function settingsOf(text: string): { readonly statements: string; readonly rest: string } {
  const [statements = ''] = settings.exec(text) ?? [];
  return { statements, rest: text.slice(statements.length) };
}

/** The variable with the date that `strftime_now` writes in place of today's, as YYYY-MM-DD. */
export const DATE_VARIABLE = 'drmas_date';

/** The midnight that begins the date which a template sets. @throws Error for a value that is no date */
export function dateOf(source: string): Date | undefined {
  const [, value] = new RegExp(`\\{% set ${DATE_VARIABLE} = (.*?) %\\}`).exec(settingsOf(source).statements) ?? [];
  if (value === undefined) return undefined;
  const written = value.replaceAll('"', '');
  const date = new Date(`${written}T00:00`);
  if (Number.isNaN(date.getTime()) || strftime('%F', date) !== written)
    throw new Error(`${DATE_VARIABLE}: expected a date such as "2026-07-26", got ${value}`);
  return date;
}

/** The problem of a given chat template: an unknown name, or invalid Jinja. Undefined if there is none. */
export function templateProblem(text: string): string | undefined {
  if (Object.hasOwn(templates, text)) return undefined;
  if (!text.includes('{'))
    return `expected the text of a Jinja template, or one of ${TEMPLATE_NAMES.join(', ')}; got '${text}'`;
  try {
    chatTemplate(text);
    return undefined;
  } catch (error) {
    return `the chat template cannot be read: ${messageOf(error)}`;
  }
}

/**
 * The template of a name, or of a text, after the statements that set variables. A text that is one of the named ones
 * has the token that ends its messages too.
 * @throws TokenizerError when there is none of this name
 */
export function templateOf(text: string): NamedTemplate {
  const { statements, rest } = settingsOf(text);
  const problem = templateProblem(rest);
  if (problem !== undefined) throw new TokenizerError(problem);
  const entries: [string, NamedTemplate][] = Object.entries(templates);
  const named = entries.find(([name, { source }]) => name === rest || source === rest)?.[1];
  return { ...named, source: statements + (named?.source ?? rest) };
}
