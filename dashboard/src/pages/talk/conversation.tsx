import type { TalkQuestion } from '../../../../src/runs/analysis.js';
import { clean } from '../../parts/texts.js';

interface ConversationProps {
  /** The system prompt of the agent; null for none. */
  readonly system: string | null;
  readonly messages: TalkQuestion['messages'];
  readonly onForget: () => void;
}

/** The conversation before the user's message. */
export function Conversation({ system, messages, onForget }: ConversationProps) {
  const said = messages.filter(({ role, content }) => role !== 'system' || content !== system);
  return (
    <>
      {system !== null && (
        <details class="message">
          <summary class="faint">its system prompt</summary>
          <pre>{clean(system)}</pre>
        </details>
      )}
      {said.map(({ role, content }, i) => (
        <div key={i} class="message">
          <span class="faint">{role}</span>
          <pre>{clean(content)}</pre>
        </div>
      ))}
      {messages.length > 0 && (
        <button type="button" class="plain" onClick={onForget}>
          forget what the episode said
        </button>
      )}
    </>
  );
}
