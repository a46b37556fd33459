/** Runs of LangSmith and traces of MLflow as their Python clients and interfaces write them. */
import { isObject } from '@drmas/engine/errors';
import { toolsIn } from './offered-tools.js';
import {
  contentNames,
  isEmpty,
  type JsonFields,
  jsonOf,
  scoreOf,
  startText,
  type TraceScore,
  text,
  textField,
  type UnplacedSpan,
} from './span-fields.js';

/** Names of runs that LangChain and LangGraph make by themselves. */
const OF_FRAMEWORK = /^(?:Runnable|Channel|LangGraph|Chat|Prompt|__start__|_write|should_continue)/;
/** Names that LangGraph's and LangChain's own agents give to the node that calls the model. They tell no agent. */
const OF_MODEL = /^(?:agent|model|model_request|call_model)$/;

/** A run of LangSmith. The runs below it may lie in it, as `child_runs`. */
export function langsmithRun(value: JsonFields): UnplacedSpan | undefined {
  const [type, id] = [text(value.run_type), text(value.id)];
  const parent = text(value.parent_run_id);
  const trace = textField(value, 'traceId') ?? (parent === undefined ? id : undefined);
  if (type === undefined || id === undefined || trace === undefined) return undefined;
  const isCall = type === 'llm' || type === 'chat_model';
  // A row of a bulk export has objects as JSON.
  const [input, outputs, feedback, more] = [value.inputs, value.outputs, value.feedback_stats, value.extra].map(
    (field) => jsonOf(field),
  );
  const [inputs = {}, extra = {}] = [input, more].map((part) => (isObject(part) ? part : {}));
  const [metadata = {}, parameters = {}] = [extra.metadata, extra.invocation_params].map((part) =>
    isObject(part) ? part : {},
  );
  const name = text(value.name) ?? '';
  const isOwn = !(isCall || type === 'tool' || parent === undefined || OF_FRAMEWORK.test(name) || OF_MODEL.test(name));
  const own = isOwn ? name : undefined;
  const agents = [graphAgent(metadata), own];
  const usage = usageOf(outputs);
  return {
    ...{ trace, id, name, parent },
    start: startText(value.start_time),
    attributes: {
      ...(isCall ? { 'gen_ai.operation.name': 'chat' } : {}),
      'gen_ai.agent.name': agents.find((each) => text(each) !== undefined),
      'gen_ai.request.model': metadata.ls_model_name ?? parameters.model ?? parameters.model_name ?? inputs.model,
      'gen_ai.tool.definitions': isCall ? (toolsIn(parameters) ?? toolsIn(inputs)) : undefined,
      ...contentNames(isCall, { input, output: isCall ? outputOf(outputs) : outputs }),
      'gen_ai.usage.input_tokens': value.prompt_tokens ?? usage.input_tokens ?? usage.prompt_tokens,
      'gen_ai.usage.output_tokens': value.completion_tokens ?? usage.output_tokens ?? usage.completion_tokens,
    },
    scores: feedbackOf(feedback),
    failed: !isEmpty(value.error),
  };
}

/** The agent that LangChain and LangGraph name in the metadata of a call. */
export const graphAgent = (metadata: JsonFields): string | undefined =>
  [metadata.lc_agent_name, metadata.agent_name, nodeOf(metadata)].map(text).find((each) => each !== undefined);

/** The node of LangGraph. If it calls the model, the nearest other around it: `buyer` of `buyer:4f1c|agent:9b02`. */
function nodeOf(metadata: JsonFields): unknown {
  const node = text(metadata.langgraph_node);
  const names = text(metadata.langgraph_checkpoint_ns)?.split('|') ?? [];
  if (node === undefined || !OF_MODEL.test(node)) return node;
  return names.map((name) => name.split(':')[0] as string).findLast((name) => !OF_MODEL.test(name));
}

/** The result of a call. LangSmith wraps a value that is no object. */
const outputOf = (outputs: unknown): unknown =>
  isObject(outputs) && Object.keys(outputs).join() === 'output' ? outputs.output : outputs;

function usageOf(outputs: unknown): JsonFields {
  if (!isObject(outputs)) return {};
  const { usage, usage_metadata: metadata, llm_output: whole, generations } = outputs;
  const [first]: readonly unknown[] = Array.isArray(generations) ? generations.flat() : [];
  const message = isObject(first) && isObject(first.message) ? first.message : {};
  const kwargs = isObject(message.kwargs) ? message.kwargs : message;
  const found = [metadata, usage, kwargs.usage_metadata, isObject(whole) ? whole.token_usage : undefined];
  return found.find(isObject) ?? {};
}

/** The feedback of a run: each key with the mean of its scores, or with the counts of its categories. */
const feedbackOf = (stats: unknown): TraceScore[] =>
  Object.entries(isObject(stats) ? stats : {}).flatMap(([name, each]) => {
    const { avg, values } = isObject(each) ? each : {};
    return scoreOf(name, avg ?? (isObject(values) && Object.keys(values).length > 0 ? values : undefined));
  });

/** A trace of MLflow, or a row of its table of traces: its spans, and the whole with the assessments. */
export function mlflowTrace(
  value: JsonFields,
): { readonly whole: UnplacedSpan; readonly spans: readonly unknown[] } | undefined {
  const [info, data] = [jsonOf(value.info), jsonOf(value.data)];
  const isWhole = isObject(info) && isObject(data);
  const spans = jsonOf(isWhole ? data.spans : value.spans);
  const listed = jsonOf(isWhole ? info.assessments : value.assessments);
  if (!Array.isArray(spans) || (!isWhole && !Array.isArray(listed))) return undefined;
  const [first]: readonly unknown[] = spans;
  const context = isObject(first) && isObject(first.context) ? first.context : first;
  const trace = isObject(context) ? text(context.trace_id) : undefined;
  if (trace === undefined) return undefined;
  const assessments: readonly unknown[] = Array.isArray(listed) ? listed : [];
  const scores = assessments.filter(isObject).flatMap(({ feedback, valid, ...each }) => {
    const isGiven = isObject(feedback) && valid !== false; // another assessment may have taken its place
    return isGiven ? scoreOf(each.assessment_name ?? each.name, feedback.value, text(each.assessment_id)) : [];
  });
  const whole = {
    trace,
    id: `trace ${trace}`,
    name: '',
    start: '',
    attributes: {},
    scores,
    failed: false,
  };
  return { whole: { ...whole, kind: 'score' }, spans };
}
