/** A file of a user: a graph of LangGraph that is a function of its models. */
export const LANGGRAPH_FILE = `import { Annotation, END, START, StateGraph } from '@langchain/langgraph';
import type { ChatOpenAI } from '@langchain/openai';

const State = Annotation.Root({ question: Annotation<string>, kind: Annotation<string>, answer: Annotation<string> });

export const deskOf = (llm: (agent: string) => ChatOpenAI) =>
  new StateGraph(State)
    .addNode('planner', async ({ question }) => ({ kind: (await llm('planner').invoke(question)).text }))
    .addNode('worker', async ({ kind }) => ({ answer: (await llm('worker').invoke(kind)).text }))
    .addEdge(START, 'planner')
    .addEdge('planner', 'worker')
    .addEdge('worker', END)
    .compile();
`;
