import { isIP } from 'node:net';

/** Whether only this machine reaches an address, or a host as an address writes it. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || (isIP(host) === 4 && host.startsWith('127.'));
