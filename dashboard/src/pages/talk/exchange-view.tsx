import { duration } from '../../../../src/base/host.js';
import { clean } from '../../parts/texts.js';
import type { Exchange, TalkAnswer } from './exchange.js';

/** A question with both answers side by side. */
export function ExchangeView({ exchange }: { readonly exchange: Exchange }) {
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
          {end.cut && <span class="flag"> cut at its limit</span>}
        </p>
      )}
    </section>
  );
}
