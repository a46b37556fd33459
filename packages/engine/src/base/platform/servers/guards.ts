/** The guard of every server of drmas: a request that fails one of these checks does not reach the app. */
import { isIP } from 'node:net';
import { parse } from 'hono/utils/cookie';
import { DialectError } from '../../core/errors.js';
import { visible } from '../../core/format.js';
import { isEqual, isLoopback } from './token.js';

export type Access =
  /** Programs of this machine, without a token. Web pages are kept out by the names in `Host` and `Origin`. */
  | { readonly type: 'local' }
  /** Clients with the token, as `Authorization: Bearer` or `x-api-key`; browsers by a cookie, if it has a name. */
  | { readonly type: 'token'; readonly token: string; readonly cookie?: string }
  /** Clients with a secret of their own, which the app checks in each request. */
  | { readonly type: 'secrets' };

export interface ServerPolicy {
  readonly access: Access;
  /** Other names under which clients may reach the server, as `allowedHost` returns them. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Paths that need no token: they say only whether the server is well. */
  readonly publicPaths?: readonly string[];
  /** The content types of bodies. Default: JSON. */
  readonly types?: readonly string[];
  readonly mostBytes: number;
  readonly refuse: (refusal: DialectError, request: Request) => Response;
}

/** Answers a request that may not reach the app; undefined for the others. */
export type Guard = (request: Request) => Response | undefined;

/** The access of a server with this token, or without one. */
export const accessBy = (token: string | undefined): Access =>
  token === undefined ? { type: 'local' } : { type: 'token', token };

/** Makes a server's guard. */
export function guardOf(policy: ServerPolicy): Guard {
  const { access, publicPaths = [], mostBytes } = policy;
  return (request) => {
    // The adaptor checks a host's letters. A name such as xn--a has the right ones, and is none.
    if (!URL.canParse(request.url)) return new Response('the Host header is no name of a machine', { status: 400 });
    const { pathname: path } = new URL(request.url);
    const refuse = (status: number, code: string, message: string) =>
      policy.refuse(new DialectError(status, code, message), request);

    const host = foreignHost(request, policy);
    if (host !== undefined)
      return refuse(
        403,
        'foreign_host',
        `this server accepts requests for localhost, not for ${host.slice(0, 100)}; --allow-host adds a name`,
      );
    if (isOfForeignPage(request, policy))
      return refuse(403, 'foreign_origin', 'pages of other origins may not send requests to this server');

    const proof = proofOf(request, access);
    if (proof === 'entered') return entrance(request, access);
    if (proof === undefined && !publicPaths.includes(path))
      return refuse(
        401,
        'invalid_api_key',
        `expected this server's token as a bearer or as x-api-key${inBrowsers(access)}`,
      );

    // A page cannot send a key without asking the server first, but a form can send text without one.
    if (proof !== 'key' && !hasKnownType(request, policy))
      return refuse(415, 'unsupported_type', `expected the content type ${typesOf(policy).join(' or ')}`);
    const encoding = request.headers.get('content-encoding')?.trim().toLowerCase() ?? 'identity';
    if (encoding !== 'identity')
      return refuse(
        415,
        'unsupported_encoding',
        `expected a body without compression, got the Content-Encoding '${visible(encoding.slice(0, 50))}'`,
      );
    if (Number(request.headers.get('content-length') ?? 0) > mostBytes)
      return refuse(413, 'too_long', `the body is longer than ${mostBytes / 1e6} MB`);
    return undefined;
  };
}

/** The host that a request is for, if it is none that this server accepts without a token. */
function foreignHost({ url, headers }: Request, { access, allowedHosts = [] }: ServerPolicy): string | undefined {
  if (access.type !== 'local') return undefined; // a page that reaches it under another name has no secret
  // The target of a request may be a whole URL with another host than the header's.
  const hosts = [new URL(url).hostname, hostnameOf(`http://${headers.get('host') ?? new URL(url).host}`)];
  const foreign = (host: string | undefined) =>
    host === undefined || !(isLoopback(host) || allowedHosts.includes(host));
  return hosts.some(foreign) ? (headers.get('host') ?? '') : undefined;
}

/** `none` is an action of the user, such as typing an address. */
const OWN: ReadonlySet<string> = new Set(['same-origin', 'none']);

/** Whether a page of another origin sends a request. Other programs than browsers send neither header. */
function isOfForeignPage({ url, method, headers }: Request, { access, allowedHosts = [] }: ServerPolicy): boolean {
  const site = headers.get('sec-fetch-site');
  const isLink = method === 'GET' && headers.get('sec-fetch-mode') === 'navigate';
  if (site !== null && !OWN.has(site) && !isLink) return true;
  const origin = headers.get('origin');
  if (origin === null) return false;
  // Behind a proxy the page has another origin than this server; a browser's word then counts, as there is a token.
  if (site === 'same-origin' && access.type !== 'local') return false;
  if (!URL.canParse(origin)) return true;
  return new URL(origin).host !== new URL(url).host && !allowedHosts.includes(new URL(origin).hostname);
}

type Proof = 'key' | 'ambient' | 'entered';

function proofOf({ url, method, headers }: Request, access: Access): Proof | undefined {
  if (access.type === 'local') return 'ambient';
  if (access.type === 'secrets') return 'key';
  const { token, cookie } = access;
  const bearer = /^Bearer\s+(.+)$/i.exec(headers.get('authorization') ?? '')?.[1];
  if ([bearer, headers.get('x-api-key')].some((key) => typeof key === 'string' && isEqual(key, token))) return 'key';
  if (cookie === undefined) return undefined;
  const kept = parse(headers.get('cookie') ?? '', cookie)[cookie];
  if (kept !== undefined && isEqual(kept, token)) return 'ambient';
  const { pathname, searchParams } = new URL(url);
  const typed = searchParams.get('token');
  const isEntrance = method === 'GET' && pathname === '/' && typed !== null && isEqual(typed, token);
  return isEntrance ? 'entered' : undefined;
}

/** Moves the token from the address into a cookie, so that it stays in no history and no log. */
function entrance({ url }: Request, access: Access): Response {
  const { token, cookie } = access as Extract<Access, { type: 'token' }>;
  const value = `${cookie}=${encodeURIComponent(token)}; Path=/; HttpOnly; SameSite=Strict`;
  return new Response(null, { status: 302, headers: { location: new URL(url).pathname, 'set-cookie': value } });
}

const inBrowsers = (access: Access) =>
  access.type === 'token' && access.cookie !== undefined
    ? '; in a browser, open the address with its ?token=... once'
    : '';

const typesOf = ({ types = ['application/json'] }: ServerPolicy) => types;

function hasKnownType({ method, headers }: Request, policy: ServerPolicy): boolean {
  if (method === 'GET' || method === 'HEAD') return true;
  const isEmpty =
    headers.get('content-length') === '0' || !(headers.has('content-length') || headers.has('transfer-encoding'));
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
  if (type === undefined) return isEmpty;
  return typesOf(policy).includes(type);
}

/** A host as requests name it: in small letters, without a port, and in ASCII. Undefined if the name is no host. */
export const allowedHost = (name: string): string | undefined =>
  /[/?#@*]/.test(name) ? undefined : hostnameOf(`http://${isIP(name) === 6 ? `[${name}]` : name}`);

const hostnameOf = (url: string) => (URL.canParse(url) ? new URL(url).hostname : undefined);
