/** The place of the flag `--store`. */
import { resolve } from 'node:path';
import { FolderObjects } from './folder-objects.js';
import { checkObjects, type ObjectStore } from './object-store.js';
import { S3Objects, s3Place } from './s3-objects.js';

/**
 * Opens a folder, or `s3://bucket/prefix`, and checks that it can be used.
 * @throws RecipeError when the address is wrong, or the S3 client is not installed; StoreError when the place cannot be
 * written and read
 */
export async function openObjects(place: string, environment: NodeJS.ProcessEnv = process.env): Promise<ObjectStore> {
  const s3 = s3Place(place);
  const objects = s3 === undefined ? new FolderObjects(resolve(place)) : await S3Objects.open(s3, { environment });
  await checkObjects(objects);
  return objects;
}
