import { byteText, duration } from '@drmas/engine/host';
import { useEffect, useState } from 'preact/hooks';
import type { TalkFacts, TalkQuestion } from '../../../../../src/runs/analysis.js';
import { Choice, NumberField, numberOr } from '../../parts/fields.js';
import { clean } from '../../parts/texts.js';
import type { Route } from '../../routes.js';
import type { HeardRun } from '../../run-store.js';
import type { Exchange, TalkAnswer } from './exchange.js';
import { useQuoted, useTalk } from './use-talk.js';

interface TalkTabProps {
  readonly run: HeardRun;
  readonly query: Extract<Route, { page: 'run' }>['query'];
}

const NEWEST = '';

/** A question to an agent of a run, with its answers after and before training. */
export function TalkTab({ run, query }: TalkTabProps) {
  const { facts, problem, exchanges, ask, stop, release } = useTalk(run.name);
  const quoted = useQuoted(run.name, query);
  const [agent, setAgent] = useState(query.agent ?? '');
  const [step, setStep] = useState(NEWEST);
  const [greedy, setGreedy] = useState(false);
  const [temperature, setTemperature] = useState('');
  const [maxTokens, setMaxTokens] = useState('');
  const [words, setWords] = useState('');
  const [seed, setSeed] = useState(0);
  const [messages, setMessages] = useState<TalkQuestion['messages']>([]);
  useEffect(() => setMessages(quoted.messages), [quoted.messages]);
  if (problem !== undefined) return <p class="notice bad">{clean(problem)}</p>;
  if (facts === undefined) return <p class="empty">reading …</p>;
  if (facts.problem !== null) return <p class="empty">{clean(facts.problem)}</p>;
  const chosen = facts.agents.find(({ name }) => name === agent) ?? facts.agents[0];
  const busy = exchanges[0] !== undefined && exchanges[0].state !== 'over';
  const conversation = words.trim() === '' ? messages : [...messages, { role: 'user' as const, content: words }];
  const send = () => {
    if (busy || conversation.length === 0 || chosen === undefined) return;
    setSeed(seed + 1);
    void ask({
      run: run.name,
      agent: chosen.name,
      messages: conversation,
      seed,
      step: step === NEWEST ? null : Number(step),
      temperature: greedy ? 0 : numberOr(temperature),
      maxTokens: numberOr(maxTokens),
    });
  };
  return (
    <div class="talk">
      <form
        class="asking"
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
      >
        <div class="controls">
          <Choice
            label="agent"
            value={chosen?.name ?? ''}
            options={facts.agents.map(({ name }) => [name, clean(name)])}
            onChange={setAgent}
          />
          <Choice
            label="trained for"
            value={step}
            options={[
              [NEWEST, `step ${facts.checkpoints.at(-1)}, the last`],
              ...facts.checkpoints.toReversed().map((one) => [String(one), `step ${one}`] as const),
            ]}
            onChange={setStep}
          />
          <label>
            <input type="checkbox" checked={greedy} onChange={(event) => setGreedy(event.currentTarget.checked)} />
            greedy
          </label>
          {!greedy && (
            <NumberField
              label="temperature"
              placeholder={String(chosen?.temperature ?? 1)}
              name="temperature"
              value={temperature}
              onChange={setTemperature}
            />
          )}
          <NumberField
            label="at most"
            unit="tokens"
            placeholder={String(chosen?.maxTokens ?? '')}
            name="most tokens"
            value={maxTokens}
            onChange={setMaxTokens}
          />
        </div>
        {quoted.problem !== undefined && <p class="notice bad">{clean(quoted.problem)}</p>}
        <Conversation system={chosen?.system ?? null} messages={messages} onForget={() => setMessages([])} />
        <textarea
          rows={3}
          placeholder={messages.length === 0 ? 'a message, as the team sends it' : 'a further message, or nothing'}
          aria-label="message"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            send();
          }}
        />
        <div class="send">
          {busy ? (
            <button type="button" onClick={stop}>
              stop
            </button>
          ) : (
            <button type="submit" class="main" disabled={conversation.length === 0}>
              ask
            </button>
          )}
          <Costs facts={facts} onRelease={release} busy={busy} />
        </div>
      </form>
      {exchanges.map((exchange, i) => (
        <ExchangeView key={exchanges.length - i} exchange={exchange} />
      ))}
    </div>
  );
}

interface CostsProps {
  readonly facts: TalkFacts;
  readonly busy: boolean;
  readonly onRelease: () => void;
}

function Costs({ facts: { loaded, idleMinutes }, busy, onRelease }: CostsProps) {
  if (loaded === null)
    return (
      <span class="faint">
        The first question loads the agent, and what it was before training, into the dashboard's process: it takes
        memory and a processor of that machine, and nothing of the run is changed.
      </span>
    );
  return (
    <span class="faint">
      In memory: {clean(loaded.agent)} of {clean(loaded.run)} at step {loaded.step} and before training,{' '}
      {byteText(loaded.bytes)} of weights; freed {idleMinutes} minutes after the last answer.{' '}
      <button type="button" class="plain" disabled={busy} onClick={onRelease}>
        free it now
      </button>
    </span>
  );
}

interface ConversationProps {
  /** The system prompt of the agent; null for none. */
  readonly system: string | null;
  readonly messages: TalkQuestion['messages'];
  readonly onForget: () => void;
}

/** The conversation before the user's message. */
function Conversation({ system, messages, onForget }: ConversationProps) {
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

function ExchangeView({ exchange }: { readonly exchange: Exchange }) {
  const { question, open, answers, state, problem } = exchange;
  const { agent, messages, temperature, step } = question;
  const facts = [
    agent,
    `step ${open?.loaded.step ?? step ?? ''}`,
    temperature === null ? '' : temperature === 0 ? 'greedy' : `temperature ${temperature}`,
  ];
  return (
    <article class="exchange">
      <header>
        <span class="faint">{clean(facts.filter((fact) => fact !== '').join(', '))}</span>
        <pre>{clean(messages.at(-1)?.content ?? '')}</pre>
      </header>
      {state === 'loading' && <p class="faint">loading the weights …</p>}
      {open !== undefined && (
        <div class="sides">
          <Side title="trained" note={`step ${open.loaded.step}`} answer={answers.trained} />
          {open.untrained.there ? (
            <Side title="before training" note={open.untrained.what} answer={answers.untrained} />
          ) : (
            <section class="side">
              <h3>before training</h3>
              <p class="faint">{clean(open.untrained.what)}</p>
            </section>
          )}
        </div>
      )}
      {problem !== undefined && <p class="notice bad">{clean(problem)}</p>}
    </article>
  );
}

interface SideProps {
  readonly title: string;
  readonly note: string;
  readonly answer: TalkAnswer | undefined;
}

function Side({ title, note, answer }: SideProps) {
  const end = answer?.end;
  return (
    <section class="side" aria-label={title}>
      <h3>
        {title} <span class="faint">({clean(note)})</span>
      </h3>
      <pre>{answer === undefined ? '…' : clean(answer.text) || '(nothing)'}</pre>
      {end !== undefined && (
        <p class="faint">
          {end.tokens} {end.tokens === 1 ? 'token' : 'tokens'}, {duration(end.seconds)}
          {end.cut && <span class="flag"> ended by maxTokens</span>}
        </p>
      )}
    </section>
  );
}
