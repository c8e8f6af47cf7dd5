import { IsIn, IsString, ValidateIf } from 'class-validator';

/** The body of a request that decides an approval. */
export class DecisionBody {
  @IsIn(['approve', 'deny'], { message: 'decision must be approve or deny' })
  decision!: 'approve' | 'deny';

  @ValidateIf(({ reason }: DecisionBody) => reason !== undefined)
  @IsString({ message: 'reason must be text' })
  reason?: string;
}
