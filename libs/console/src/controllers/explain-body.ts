import { Transform } from 'class-transformer';
import { IsObject, IsString, MinLength, ValidateIf } from 'class-validator';

/** The body of a request that simulates a call. */
export class ExplainBody {
  @MinLength(1, { message: 'agent must be a name' })
  agent!: string;

  @MinLength(1, { message: 'tool must be a name' })
  tool!: string;

  /** As sent: the class is not the place for the arguments of tools. */
  @Transform(({ obj }) => (obj as ExplainBody).args)
  @IsObject({ message: 'args must be a JSON object' })
  args!: Readonly<Record<string, unknown>>;

  /** Id of the user whose session is simulated; empty: none. */
  @ValidateIf(({ user }: ExplainBody) => user !== undefined)
  @IsString({ message: 'user must be the id of a user' })
  user?: string;
}
