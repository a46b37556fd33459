/** A chat message. A model's chat template turns a list of them into token ids. */
export interface Message {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}

/** A message with instructions, before the conversation. */
export const system = (content: string): Message => ({ role: 'system', content });
/** A message that a user wrote. */
export const user = (content: string): Message => ({ role: 'user', content });
/** A message that an assistant wrote. */
export const assistant = (content: string): Message => ({ role: 'assistant', content });
