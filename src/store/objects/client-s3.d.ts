/** What is used of the optional package, for checkouts where it is not installed yet. */
declare module '@aws-sdk/client-s3' {
  export interface CompletedPart {
    readonly PartNumber?: number | undefined;
    readonly ETag?: string | undefined;
  }
  interface Page {
    readonly Contents?: readonly { readonly Key?: string }[];
    readonly IsTruncated?: boolean;
    readonly NextContinuationToken?: string;
  }
  class Command<Answer> {
    constructor(request: object);
    readonly answer?: Answer;
  }
  export class PutObjectCommand extends Command<object> {}
  export class GetObjectCommand extends Command<{ readonly Body?: unknown; readonly ContentLength?: number }> {}
  export class ListObjectsV2Command extends Command<Page> {}
  export class DeleteObjectCommand extends Command<object> {}
  export class CreateMultipartUploadCommand extends Command<{ readonly UploadId?: string }> {}
  export class UploadPartCommand extends Command<{ readonly ETag?: string }> {}
  export class CompleteMultipartUploadCommand extends Command<object> {}
  export class AbortMultipartUploadCommand extends Command<object> {}
  export class S3Client {
    constructor(options: object);
    send<Answer>(command: Command<Answer>): Promise<Answer>;
  }
}
