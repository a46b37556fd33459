/** A question to an agent with its answers, as they come. */
import type { TalkMessage, TalkQuestion, TalkSide } from '../../../../../src/runs/analysis.js';

export interface TalkAnswer {
  readonly text: string;
  /** Absent while it is being written. */
  readonly end?: Extract<TalkMessage, { readonly type: 'end' }>;
}

export interface Exchange {
  readonly question: TalkQuestion;
  readonly state: 'waiting' | 'loading' | 'answering' | 'over';
  readonly open?: Extract<TalkMessage, { readonly type: 'open' }>;
  readonly answers: Readonly<Partial<Record<TalkSide, TalkAnswer>>>;
  readonly problem?: string;
}

export function afterMessage(exchange: Exchange, message: TalkMessage): Exchange {
  switch (message.type) {
    case 'loading':
      return { ...exchange, state: 'loading' };
    case 'open':
      return { ...exchange, state: 'answering', open: message };
    case 'text': {
      const text = (exchange.answers[message.side]?.text ?? '') + message.text;
      return { ...exchange, answers: { ...exchange.answers, [message.side]: { text } } };
    }
    case 'end':
      return { ...exchange, answers: { ...exchange.answers, [message.side]: { text: message.text, end: message } } };
    case 'failed':
      return { ...exchange, problem: message.message };
  }
}
