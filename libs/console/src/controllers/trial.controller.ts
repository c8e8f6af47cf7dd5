import { Body, Get, HttpCode, Inject, Post, Res, UseInterceptors } from '@nestjs/common';
import type { ServerResponse } from 'node:http';
import { IsOptional, IsString, MinLength } from 'class-validator';
import { AuditTrail } from '#audit';
import { ConfigVersions, writeEffective } from '#config';
import { ClosedSignal, createValidationPipe, LongJsonBodyInterceptor, NotServed } from '#streaming';
import { CurrentOperator, OperatorController } from '../console.guards.js';
import { type Operator, OperatorNotes } from '../operator-gate.js';
import { collectCalls, type PolicyTrial } from '../policy-trial.js';
import { refuseBusy, SimulationService } from './explain.controller.js';

/** What an operator tries. */
export class TrialBody {
  @IsString({ message: 'file must be text: YAML with agents and policy' })
  @MinLength(1, { message: 'file must be text: YAML with agents and policy' })
  file!: string;

  /** Policy cases as YAML. */
  @IsOptional()
  @IsString({ message: 'tests must be text: YAML with policy cases' })
  tests?: string;
}

/** Milliseconds of one trial. */
const TRIED_WITHIN = 60_000;

/** Tries a policy before it is deployed, and shows the one that is served. Nothing is stored. */
@OperatorController('console/api/policy')
export class TrialController {
  constructor(
    @Inject(SimulationService) private readonly simulations: SimulationService,
    @Inject(AuditTrail) private readonly trail: AuditTrail,
    @Inject(ConfigVersions) private readonly versions: ConfigVersions,
    @Inject(OperatorNotes) private readonly notes: OperatorNotes,
  ) {}

  @Post('trial')
  @HttpCode(200)
  @UseInterceptors(LongJsonBodyInterceptor)
  async tryPolicy(
    @CurrentOperator() operator: Operator,
    @Body(createValidationPipe(TrialBody)) { file, tests = '' }: TrialBody,
    @ClosedSignal() closed: AbortSignal,
  ): Promise<PolicyTrial> {
    if (!this.simulations.canTry)
      throw new NotServed(404, 'this configuration is given by code: there is no file to try');
    const over = AbortSignal.any([closed, AbortSignal.timeout(TRIED_WITHIN)]);
    const order = { file, tests, collectCalls: () => collectCalls(this.trail, over) };
    const trial = await this.simulations.tryPolicy(order, over).catch((error: unknown) => {
      if (over.aborted && !closed.aborted)
        throw new NotServed(503, 'the trial took too long: try fewer agents, classes or cases');
      return refuseBusy(error);
    });
    this.notes.write(operator, 'console.policy_trial');
    return trial;
  }

  /** The agents and the policy that are served, as a file that can be tried. */
  @Get('effective')
  effective(@CurrentOperator() operator: Operator, @Res() response: ServerResponse): void {
    const { current } = this.versions;
    this.notes.write(operator, 'console.policy_file', current.policy.version);
    response.writeHead(200, {
      'Content-Type': 'application/yaml; charset=utf-8',
      'Content-Disposition': `attachment; filename="parley-policy-${current.policy.version}.yaml"`,
    });
    response.end(writeEffective(current.config));
  }
}
