import { useEffect, useState } from 'preact/hooks';
import { byteText } from '../../../../src/base/host.js';
import type { TalkFacts, TalkQuestion } from '../../../../src/runs/analysis.js';
import { Choice } from '../../parts/choice.js';
import { NumberField, numberOr } from '../../parts/number-field.js';
import { clean } from '../../parts/texts.js';
import type { Route } from '../../routes.js';
import type { HeardRun } from '../../run-store.js';
import { Conversation } from './conversation.js';
import { ExchangeView } from './exchange-view.js';
import { useQuoted } from './use-quoted.js';
import { useTalk } from './use-talk.js';

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
      ...{ run: run.name, agent: chosen.name, messages: conversation, seed },
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

/** The costs of answers for the machine that serves the page. */
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
