import { Body, Get, HttpCode, Inject, Post, UseInterceptors } from '@nestjs/common';
import { IsObject, IsString, MinLength, ValidateIf } from 'class-validator';
import type { SimulatedCall } from '#dispatcher';
import { JsonBodyInterceptor, NotServed, createValidationPipe } from '#streaming';
import { CurrentOperator, OperatorController } from '../console.guards.js';
import { type Operator, OperatorNotes } from '../operator-gate.js';
import type { PolicyTrial, TrialOrder } from '../policy-trial.js';
import type { ShownChange, ShownSurface } from '../policy-view.js';

/** An agent whose calls can be simulated, and its tools. */
export interface SimulatedAgent {
  readonly name: string;
  readonly permissions: string;
  readonly tenant_id: string | number | null;
  /** It reads with the session of its caller: a simulation needs a user. */
  readonly asks_user: boolean;
  /** Whether it may use this console. */
  readonly operator: boolean;
  /** Names of tools. */
  readonly tools: readonly string[];
}

/** The configuration version that an answer is of. */
export interface PolicyVersion {
  readonly version: string;
  /** Number of the configuration version in this process. */
  readonly number: number;
}

/** What an agent sees of a part of the classes. */
export interface ShownAgentSurface extends PolicyVersion, ShownSurface {
  readonly agent: string;
  readonly permissions: string;
  readonly tenant_id: string | number | null;
  readonly asks_user: boolean;
  readonly total: number;
  readonly next: string | null;
}

/** A part of the classes that the listing of an agent names. */
export interface ListedClasses {
  readonly agent: string;
  readonly classes: readonly { readonly name: string; readonly description: string | null }[];
  readonly total: number;
  readonly next: string | null;
}

/** What agents gained and lost between two versions of the policy. */
export interface PolicyChanges {
  /** Those that are kept, the latest first. */
  readonly versions: readonly (PolicyVersion & { readonly loaded_at: string })[];
  readonly from: number | null;
  readonly to: number;
  readonly widens: boolean;
  readonly changes: readonly ShownChange[];
  /** Changes that are left out. */
  readonly cut: number;
  readonly classes_left_out: number;
  readonly scope: 'replica';
}

export interface ListPart {
  /** The last name before it. */
  readonly after: string;
  readonly limit: number;
}

export interface SimulationCatalogue {
  readonly policy: PolicyVersion;
  readonly agents: readonly SimulatedAgent[];
  /** All tools that any of the agents may call. */
  readonly tools: readonly SimulatedTool[];
}

export interface SimulatedTool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: Readonly<Record<string, unknown>>;
}

export interface SimulationRequest {
  readonly agent: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Id of the user whose session is simulated. */
  readonly user?: string;
}

/** Too many simulations are waiting. */
export class SimulationsBusy extends Error {
  override readonly name = 'SimulationsBusy';
  constructor() {
    super('too many simulations wait already');
  }
}

/** @throws NotServed when too many simulations wait */
export function refuseBusy(error: unknown): never {
  if (error instanceof SimulationsBusy)
    throw new NotServed(503, 'too many questions wait already', { 'Retry-After': '2' });
  throw error;
}

/** Simulates calls: their gates are evaluated, and nothing is executed. */
export abstract class SimulationService {
  /** The agents and tools, sorted by name. @throws SimulationsBusy */
  abstract catalogue(): Promise<SimulationCatalogue>;
  /** @returns `undefined` for an unknown agent. @throws SimulationsBusy */
  abstract simulate(order: SimulationRequest): Promise<SimulatedCall | undefined>;
  /** What an agent sees of classes. @returns `undefined` for an unknown agent. @throws SimulationsBusy */
  abstract surface(agent: string, part: ListPart): Promise<ShownAgentSurface | undefined>;
  /** The classes that the listing of an agent names. @returns `undefined` for an unknown agent. @throws SimulationsBusy */
  abstract listClasses(agent: string, part: ListPart): Promise<ListedClasses | undefined>;
  /** Changes between two versions, the earlier first. @returns `undefined` for one that is not kept. @throws SimulationsBusy */
  abstract changes(from: number | undefined, to: number | undefined): Promise<PolicyChanges | undefined>;
  /** Whether a policy can be tried: the configuration is in a file. */
  abstract readonly canTry: boolean;
  /** What would be so under another policy. @throws SimulationsBusy */
  abstract tryPolicy(order: TrialOrder, signal: AbortSignal): Promise<PolicyTrial>;
  /** Whether the served version lets an agent do more than the one before it; null: there was none, or it is still being compared. */
  abstract widened(): Promise<boolean | null>;
}

/** The body of a request that simulates a call. */
export class ExplainBody {
  @MinLength(1, { message: 'agent must be a name' })
  agent!: string;

  @MinLength(1, { message: 'tool must be a name' })
  tool!: string;

  @IsObject({ message: 'args must be a JSON object' })
  args!: Readonly<Record<string, unknown>>;

  /** Id of the user whose session is simulated; empty: none. */
  @ValidateIf(({ user }: ExplainBody) => user !== undefined)
  @IsString({ message: 'user must be the id of a user' })
  user?: string;
}

/** Explains what an agent may do by simulating a call. Nothing is executed and nothing is sent to the database. */
@OperatorController('console/api')
export class ExplainController {
  constructor(
    @Inject(SimulationService) private readonly simulations: SimulationService,
    @Inject(OperatorNotes) private readonly notes: OperatorNotes,
  ) {}

  @Get('agents')
  async catalogue(): Promise<Pick<SimulationCatalogue, 'agents' | 'tools'>> {
    const { agents, tools } = await this.simulations.catalogue().catch(refuseBusy);
    return { agents, tools };
  }

  @Post('explain')
  @HttpCode(200)
  @UseInterceptors(JsonBodyInterceptor)
  async explain(
    @CurrentOperator() operator: Operator,
    @Body(createValidationPipe(ExplainBody)) { agent, tool, args, user }: ExplainBody,
  ): Promise<SimulatedCall> {
    const order = { agent, tool, args, ...(user !== undefined && user !== '' && { user }) };
    const simulation = await this.simulations.simulate(order).catch(refuseBusy);
    if (!simulation) throw new NotServed(404, 'no such agent');
    this.notes.write(operator, 'console.explain', `${agent} ${tool}`);
    return simulation;
  }
}
