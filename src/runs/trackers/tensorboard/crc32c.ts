/** CRC-32C (Castagnoli), the checksum of TensorFlow's records. */

/** The polynomial 0x1EDC6F41 with its bits reversed (RFC 3720, section 12.1). */
const POLYNOMIAL = 0x82f63b78;

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
  return value;
});

export function crc32c(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = (sum >>> 8) ^ (TABLE[(sum ^ byte) & 0xff] as number);
  return (sum ^ 0xffffffff) >>> 0;
}

/**
 * The masked checksum of a record: rotated and shifted, so that data that contains checksums has a good checksum too.
 */
export function maskedCrc32c(bytes: Uint8Array): number {
  const sum = crc32c(bytes);
  return (((sum >>> 15) | (sum << 17)) + 0xa282ead8) >>> 0;
}
