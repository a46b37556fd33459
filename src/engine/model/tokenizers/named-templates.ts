/** Chat templates for base models, which have none: a named one, or a template that a user writes. */
import { messageOf, TokenizerError } from '../../../base/errors.js';
import { chatTemplate } from './chat-template.js';

/** A chat template, and the token that ends a message in it. */
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

/** The names of the chat templates that come with this package. */
export const TEMPLATE_NAMES = Object.keys(templates) as (keyof typeof templates)[];

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
 * The template of a name, or of a text; a text that is one of the named ones has the token that ends its messages too.
 * @throws TokenizerError when there is none of this name
 */
export function templateOf(text: string): NamedTemplate {
  const problem = templateProblem(text);
  if (problem !== undefined) throw new TokenizerError(problem);
  const entries: [string, NamedTemplate][] = Object.entries(templates);
  return entries.find(([name, { source }]) => name === text || source === text)?.[1] ?? { source: text };
}
