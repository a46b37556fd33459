/** `fetch` without time limits of its own, whose errors tell what to do. */

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AnswerError, messageOf, reasonOf } from '../core/errors.js';
import { isLoopback } from './servers/token.js';

/** A dispatcher of undici, the library behind Node's `fetch`, as far as it is used here. */
interface Dispatcher {
  dispatch(options: object, handler: unknown): boolean;
}

/** Where undici keeps the dispatcher of the process: under its newer interface, else under the older one. */
const DISPATCHERS = ['undici.globalDispatcher.2', 'undici.globalDispatcher.1'].map((name) => Symbol.for(name));

/** The dispatcher of the process, whose proxy and certificates stay, without time limits of its own. */
const patient: Dispatcher = {
  dispatch(options, handler) {
    const kept = globalThis as unknown as Readonly<Record<symbol, Dispatcher | undefined>>;
    const [dispatcher] = DISPATCHERS.flatMap((place) => kept[place] ?? []);
    if (dispatcher === undefined) throw new TypeError('this version of Node keeps no dispatcher for fetch');
    return dispatcher.dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, handler);
  },
};

/**
 * `fetch` that waits until its signal fires. Node's own gives up after 300 s without the head of an answer, or without
 * a further piece of its body: a model may need longer, and a deadline that a user sets may be longer.
 * @throws AnswerError if the server's TLS is refused; the errors of `fetch`
 */
export function patientFetch(address: string | URL, init: RequestInit & { signal: AbortSignal }): Promise<Response> {
  const patiently = { ...init, dispatcher: patient }; // other runtimes ignore it
  return soundFetch(address, patiently as RequestInit);
}

let parser: Promise<void> | undefined;

/** `fetch` with Node's limits of 300 s. @throws AnswerError if the server's TLS is refused; the errors of `fetch` */
export async function soundFetch(address: string | URL, init?: RequestInit): Promise<Response> {
  parser ??= process.version.startsWith('v20.') ? loadParser() : Promise.resolve();
  await parser;
  try {
    return await fetch(address, init);
  } catch (error) {
    const fault = tlsFault(error);
    if (fault !== undefined) throw new AnswerError('untrusted', fault);
    const advice = proxyAdvice(new URL(address), error);
    if (advice === undefined) throw error;
    const cause = new Error(`${reasonOf(causeOf(error))}; ${advice}`);
    // Retries know an error of the network by its message.
    throw new TypeError(messageOf(error), { cause: Object.assign(cause, { code: codeOf(error) }) });
  }
}

/**
 * Node 20 loads its parser of answers during the first connection of `fetch`. If the server closes this connection at
 * once, as a tunnel or a container without a server does, that `fetch` never ends. So the first one asks this process.
 */
async function loadParser(): Promise<void> {
  const server = createServer((_, response) => void response.end());
  try {
    await once(server.listen(0, '127.0.0.1'), 'listening');
    // The process may send all requests to a proxy, which may say nothing.
    await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { signal: AbortSignal.timeout(1000) });
  } catch {
    // This process may have no server. Then only the first connection is at risk.
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const causeOf = (error: unknown): unknown => (error instanceof Error ? (error.cause ?? error) : error);
const codeOf = (error: unknown) => String((causeOf(error) as { code?: unknown } | undefined)?.code);

/** Codes of a certificate that Node refuses, as OpenSSL names them. */
const REFUSED_CERTIFICATE = /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_CA)/;
const UNKNOWN_AUTHORITY = /^(UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

/** The reason why a server's TLS is refused, which no retry changes, with a remedy. Undefined for other errors. */
export function tlsFault(error: unknown): string | undefined {
  const [code, reason] = [codeOf(error), reasonOf(causeOf(error))];
  if (/wrong version number/i.test(reason)) return 'the server speaks no TLS: expected an address with http://';
  if (!REFUSED_CERTIFICATE.test(code)) return undefined;
  const remedy = UNKNOWN_AUTHORITY.test(code)
    ? '; if you trust it, set NODE_EXTRA_CA_CERTS to the file of its authority'
    : '';
  return `the server's certificate is refused: ${reason}${remedy}`;
}

/** Codes of a server that cannot be reached from here. */
const NO_WAY = /^(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;

/** A hint about the environment's proxy, which Node uses only with a setting. */
function proxyAdvice({ protocol, hostname }: URL, error: unknown): string | undefined {
  const { env, execArgv, versions } = process;
  const variable = `${protocol.slice(0, -1)}_proxy`;
  const name = [variable, variable.toUpperCase()].find((each) => env[each]);
  const flags = [...execArgv, env.NODE_OPTIONS].join(' ');
  const used =
    flags.includes('--use-env-proxy') || (env.NODE_USE_ENV_PROXY === '1' && Number.parseInt(versions.node, 10) > 20);
  if (name === undefined || used || isDirect(hostname) || !NO_WAY.test(codeOf(error))) return undefined;
  return `Node uses the proxy of ${name} only with NODE_USE_ENV_PROXY=1, from Node 22.21 on`;
}

/** Whether requests to a host use no proxy: it is this machine, or the environment exempts it. */
const isDirect = (host: string): boolean =>
  isLoopback(host) ||
  (process.env.no_proxy || process.env.NO_PROXY || '').split(/[\s,]+/).some((entry) => {
    const domain = entry.toLowerCase().replace(/^\*?\.|:\d+$/g, '');
    return domain === '*' || (domain !== '' && `.${host}`.endsWith(`.${domain}`));
  });
