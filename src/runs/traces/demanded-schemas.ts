/** The schemas that agents must keep to in play, written into demonstrations whose traces do not have them. */
import { exactJson, fitsJsonSchema } from '@drmas/engine/errors';
import type { JsonSchema, Message, Turn } from '@drmas/engine/nouns';
import { demandedSchema, redemanded, undemanded } from '../../teams/rollout.js';
import type { DemonstrationRow } from './demonstration-rows.js';

/** Different schemas by their JSON; undefined for calls without one. */
type Schemas = Map<string, JsonSchema | undefined>;

/** The calls of an agent in play. */
interface Played {
  readonly schemas: Schemas;
  /** The same by system prompt. */
  readonly bySystem: Map<string, Schemas>;
}

/**
 * The system prompts with which a team calls its agents. Tracers record the prompt of a program; the line with the
 * schema is added later, when a model reads the prompt.
 */
export class PlayedPrompts {
  readonly #played = new Map<string, Played>();
  readonly #prompted: readonly string[];
  /** Demonstrations with another system prompt than the team's, by agent, and one of these prompts. */
  readonly #strange = new Map<string, { count: number; readonly shown: string }>();
  readonly #unclear = new Map<string, number>();

  /**
   * @param turns Turns of the team, such as those of a rehearsal. Demonstrations of agents without turns stay as they
   *   are
   * @param prompted The agents whose system prompt the recipe or the team gives; it replaces those of demonstrations
   */
  constructor(turns: readonly Turn[], prompted: readonly string[] = []) {
    this.#prompted = prompted;
    for (const { agent, messages } of turns) {
      const { system, schema } = promptOf(messages);
      const { schemas, bySystem } = this.#played.get(agent) ?? { schemas: new Map(), bySystem: new Map() };
      const ofSystem: Schemas = bySystem.get(system) ?? new Map();
      for (const known of [schemas, ofSystem]) known.set(exactJson(schema), schema);
      this.#played.set(agent, { schemas, bySystem: bySystem.set(system, ofSystem) });
    }
  }

  /** The demonstration with the schema that its agent must keep to when the team calls it with this system prompt. */
  asPlayed(row: DemonstrationRow): DemonstrationRow {
    const { agent, messages } = row;
    const all = this.#played.get(agent);
    if (all === undefined) return row;
    const { system } = promptOf(messages);
    const equal = all.bySystem.get(system);
    if (equal === undefined && !this.#prompted.includes(agent)) {
      const { count = 0, shown = system } = this.#strange.get(agent) ?? {};
      this.#strange.set(agent, { count: count + 1, shown });
    }
    const schemas = fitting(equal ?? all.schemas, messages.at(-1));
    if (schemas.length !== 1) this.#unclear.set(agent, (this.#unclear.get(agent) ?? 0) + 1);
    return schemas.length === 1 ? { ...row, messages: redemanded(messages, schemas[0]) } : row;
  }

  /** Sentences about demonstrations so far whose prompts are other than those of the team. */
  get warnings(): readonly string[] {
    return [
      ...Array.from(this.#strange, ([agent, { count, shown }]) =>
        strangePrompt(agent, count, shown, [...(this.#played.get(agent)?.bySystem.keys() ?? [])]),
      ),
      ...Array.from(
        this.#unclear,
        ([agent, count]) =>
          `${count} demonstrations of '${agent}' stay without a schema: the team calls the agent with several schemas, and it is not clear which one an answer keeps to`,
      ),
    ];
  }
}

function promptOf(messages: readonly Message[]) {
  const [first] = messages;
  const system = first?.role === 'system' ? first.content : '';
  return { system: undemanded(system), schema: demandedSchema(system) };
}

/** The schemas; of several those that the answer keeps to. */
function fitting(different: Schemas, answer: Message | undefined): (JsonSchema | undefined)[] {
  const schemas = [...different.values()];
  if (schemas.length < 2 || answer === undefined || answer.toolCalls !== undefined) return schemas;
  const kept = schemas.filter((schema) => schema !== undefined && fitsJsonSchema(answer.content, schema));
  return kept.length > 0 ? kept : schemas.filter((schema) => schema === undefined);
}

const LONGEST = 120;

function strangePrompt(agent: string, count: number, shown: string, played: readonly string[]): string {
  const short = (text: string) => JSON.stringify(text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);
  const now = played.slice(0, 3).map(short);
  return `${count} demonstrations of '${agent}' have another system prompt than the team sends now. In the traces: ${short(shown)}; in the team: ${now.join(' or ')}. The agent learns to answer the prompt of the traces`;
}
