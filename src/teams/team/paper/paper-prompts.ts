/**
 * The prompts of the Dr. MAS paper's code (langfengQ/DrMAS at 19c632b), word for word: `agent_system/agent/agents` and
 * `agent_system/environments/prompts`, formatted there by Python and here by these functions.
 *
 * Copyright 2026 Nanyang Technological University (NTU), Singapore. Copyright 2026 Dr. MAS Team. Licensed under the
 * Apache License, Version 2.0, which is also the licence of this package: see the file LICENSE. What changed: the
 * language of the functions around the texts.
 */

export const paperSystem = 'You are a helpful and harmless assistant.';

const teammates = (heading: string, context: string) => `
# Your Teammates' Outputs${heading}
${context}
`;

const prompt = (task: string, context: string, role: string) => `
# Task Introduction
${task}
${context}
# Your Role
${role}
`;

const solverRole = `You are a "Solver Agent". Your job is to carefully reason through the math problem step by step and derive the correct answer. When reasoning, consider your teammates' outputs (if any) as auxiliary context. 

You should give the final answer within \\boxed{}.`;

const mathVerifierRole = `You are a "Verifier Agent". Your responsibility is to critically review the most recent solution provided by the "Solver Agent". Check each reasoning step, formula, and conclusion for accuracy, completeness, and logical consistency.
At the end of your output, you MUST provide your verdict within <verify> </verify> using exactly one of:
(1) <verify>approve</verify> if all steps and the final answer are correct.
(2) <verify>reject</verify> if you detect any issue.`;

/**
 * The message to an agent of the math team. @param context The outputs of the team so far, as `outputOf` writes them
 */
export function paperMathPrompt(agent: 'solver' | 'verifier', question: string, context: string): string {
  const task = `You are a member of an expert multi-agent team tasked with solving the math problem.
The team's math problem is: ${question}
`;
  return prompt(task, teammates('', context), agent === 'solver' ? solverRole : mathVerifierRole);
}

export const outputOf = (agent: string, text: string): string => `\nThe output of "${agent}": ${text}\n`;

export interface PaperSearchState {
  readonly question: string;
  /** The number of the step, from 1. */
  readonly step: number;
  /** The actions so far with the passages that they returned, as `searchLine` writes them. */
  readonly history: readonly string[];
  /** The outputs of this step so far, as `outputOf` writes them. */
  readonly context: string;
}

export const searchLine = (step: number, action: string, information: string): string =>
  `Step ${step}:${action} ${information}\n`;

const searchVerifierRole = (
  step: number,
) => `You are a "Verifier Agent" acting as a router. Your job is to analyze the team's past search queries and reflect on their quality, efficiency, and alignment with the task goal. Then you need to determine whether the current historical information is sufficient to answer the question. Based on this assessment, you will decide how to route the task.

Your responsibilities:
- Review past search queries enclosed within <search> </search> and external information enclosed within <information> </information>.
- Evaluate whether previous queries were reasonable and aligned with the task objective.
- Identify potential issues (if any), including repeated or redundant queries; imprecise queries that are too broad, vague, or missing critical constraints/entities; misaligned queries that drift away from the actual task goal.
- Assess whether the available information is complete and sufficient to generate a high-quality answer, and make a routing decision based on information sufficiency.

You are now at step ${step}. You should first reason step-by-step about the past events. After completing your reasoning, give your routing decision:
(1) If the information is sufficient to answer the question: return <verify>yes</verify>
(2) If the information is insufficient to answer the question: return <verify>no</verify>`;

const searcherRole = `You are a "Search Agent". Your primary responsibility is to call a search engine to gather external information that helps answer a given question. The search engine should be invoked using the format: <search>your query</search>. 

Before conducting the search, you should reason step-by-step about the question, any previous queries, and retrieved information, as well as your teammates' outputs (if available). This reasoning process MUST be enclosed within <think> </think> tags. Once you've finished your reasoning, provide your final search query enclosed within <search> </search>.`;

const answererRole = `You are an "Answer Agent". Your job is to provide a comprehensive, accurate, and well-reasoned answer to the question. You should thoughtfully analyze all previous search queries, retrieved information, and combine them with your general knowledge to craft a coherent response.

You should first conduct a reasoning process. This process MUST be enclosed within <think> </think> tags.
After completing your reasoning, provide your final answer within <answer> </answer> tags. For example, <answer>Beijing</answer>.`;

export function paperSearchPrompt(agent: 'verifier' | 'searcher' | 'answerer', state: PaperSearchState): string {
  const { question, step, history, context } = state;
  const past = `
Prior to this step, your team have already taken ${history.length} step(s). Below is the interaction history where <search> </search> wrapped the past search queries and <information> </information> wrapped the corresponding retrieved information returned by the external search engine. History:
${history.join('\n')}
`;
  const task = `
You are a member of an expert multi-agent team tasked with answering the given question step-by-step.
The question is: ${question}
Your team can access an external search engine to retrieve external information. At each step, you and your teammates must collaborate to make progress toward answering the question.
${history.length === 0 ? '' : past}`;
  if (agent === 'searcher') return prompt(task, teammates(` at Step ${step}`, context), searcherRole);
  return prompt(task, '', agent === 'verifier' ? searchVerifierRole(step) : answererRole);
}
