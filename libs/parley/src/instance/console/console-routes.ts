import { type DynamicModule, type INestApplicationContext, Logger } from '@nestjs/common';
import { hostname } from 'node:os';
import type { SharedState } from '#state';
import {
  DEFAULT_ISSUER,
  agentOfRules,
  type IssuerTrust,
  issuerTrust,
  OidcClient,
  type ProvenPerson,
} from '#auth';
import { Agent, type Identity } from '#core';
import { ConfigVersions, consoleIssuer, fourEyesDoubt, isFixed, type ParleyConfig } from '#config';
import {
  CONSOLE_IMPORTS,
  ConfiguredSimulations,
  ConsoleModule,
  LiveRecords,
  LiveStreams,
  type OidcSetting,
  Overviews,
  ReplicaStatus,
  ServiceStatus,
  SimulationService,
} from '#console';
import type { SchemaCatalogue } from '#data';
import type { EnvironmentGates } from '#policy';
import { McpEdge } from '#streaming';
import { DeclaredMethods, ToolEnvironment } from '#tools';
import { readBuiltPage, productVersion } from '../../package-files.js';
import type { ConsoleOpening } from '../parley-instance.js';
import { compareSurfaces } from '../policy-changes.js';
import { Readiness } from '../routes/readiness.js';
import { InstanceProvidersModule } from '../routes/routes.module.js';
import { createSimulatedIdentity, simulateInstance } from '../simulation.js';
import type { KeptRecords } from './kept-records.js';

interface ConsoleSetting extends KeptRecords, ConsoleOpening {
  readonly shared: SharedState;
}

/** Agents times classes of one comparison of versions: each costs a simulated call per tool. */
const MOST_COMPARED = 1_000;

/** The routes of the console beside a running instance. */
export function consoleRoutes(
  app: INestApplicationContext,
  { shared, live, statistics, start = (opening) => opening() }: ConsoleSetting,
): DynamicModule {
  const versions = app.get(ConfigVersions);
  // Schema and roles are those of the instance; the other ports of a simulation have no backend.
  const open = (version: ConfigVersions['current'], schemas: (read: SchemaCatalogue) => SchemaCatalogue) =>
    start(() => simulateInstance(app, { loaded: version, schemas, sessions: 'simulated' }));
  const simulations = new ConfiguredSimulations({
    versions,
    open: async (version) => {
      let catalogue: SchemaCatalogue | undefined;
      const simulation = await open(version, (read) => (catalogue = read));
      return {
        ...simulation,
        classNames: async () => (await catalogue?.snapshot())?.classNames() ?? [],
      };
    },
    compare: (before, after) => compareSurfaces([before, after], open, MOST_COMPARED),
    identityOf: createSimulatedIdentity,
    methods: { methods: app.get(DeclaredMethods), environment: app.get<EnvironmentGates>(ToolEnvironment) },
  });
  return ConsoleModule.register(
    {
      operators: () => versions.current.config.console.operators ?? [],
      approvers: versions.current.config.approvals.approvers,
      findAgent: (person) => agentOfPerson(versions, person),
      oidc: oidcOf(versions.current.config),
      folder: readBuiltPage('console'),
      providers: [
        { provide: LiveRecords, useValue: live },
        {
          provide: Overviews,
          useFactory: () =>
            new Overviews(statistics, shared.bus, {
              replica: live.replica,
              name: versions.current.config.audit.replica ?? hostname(),
              reach: shared.reach,
            }),
        },
        { provide: SimulationService, useValue: simulations },
        {
          provide: ServiceStatus,
          useFactory: (consoleStreams: LiveStreams) =>
            new ReplicaStatus({
              product: productVersion(),
              versions,
              readiness: app.get(Readiness),
              edge: app.get(McpEdge),
              consoleStreams,
              reach: shared.reach,
              replica: live.replica,
            }),
          inject: [LiveStreams],
        },
      ],
    },
    [InstanceProvidersModule.register(app, CONSOLE_IMPORTS)],
  );
}

/**
 * The operator that a person of the issuer is now. Rules are read again for each request; a session of another issuer or
 * client is nobody's.
 */
function agentOfPerson(
  { current: { config, agents, identities } }: Pick<ConfigVersions, 'current'>,
  { issuer, clientId, principal, proven }: ProvenPerson,
): Agent | null {
  const { oidc } = config.console;
  if (!oidc || consoleIssuer(config) !== issuer || oidc.clientId !== clientId) return null;
  const name = agentOfRules(oidc.operators, proven);
  const definition = name === null ? undefined : agents.get(name);
  const identity = name === null ? undefined : identities.get(name);
  if (!definition || !identity || name === null) return null;
  // A reload may have made it an agent that needs more of its caller than the console has.
  if (!isFixed(config.agents[name]?.tenantId, identity)) return null;
  return new Agent({ definition, principal, identity: identity as Identity });
}

/** The sign-in with the issuer; null where none is configured. The keys of the issuer are those of its access tokens. */
function oidcOf(config: ParleyConfig): OidcSetting | null {
  const { oidc } = config.console;
  const issuer = consoleIssuer(config);
  if (!oidc || issuer === null) return null;
  const [known] = config.auth.flatMap((rule) =>
    'oauth' in rule && rule.oauth.issuer === issuer ? [rule.oauth] : [],
  );
  const { clientId, clientSecret, redirectUri, scopes, operators: rules, maxAge } = oidc;
  const trust = issuerTrust(known ?? { issuer });
  void warnOfFourEyes(config, trust);
  const client = new OidcClient({
    issuer,
    clientId,
    clientSecret,
    redirectUri,
    scopes,
    rules,
    algorithms: known?.algorithms,
    clockSkew: known?.clockSkew ?? DEFAULT_ISSUER.clockSkew,
    trust,
  });
  return { issuer, client, host: new URL(redirectUri).host, longest: maxAge * 1000 };
}

/** Warns where a person could approve a call of their own. The issuer is asked beside the start, which needs no answer. */
async function warnOfFourEyes(config: ParleyConfig, { documents }: IssuerTrust): Promise<void> {
  // Only an issuer of pairwise subjects can raise a doubt that the configuration alone does not.
  if (fourEyesDoubt(config, ['pairwise']) === null) return;
  const metadata = fourEyesDoubt(config) === null ? await documents.current().catch(() => null) : null;
  const doubt = fourEyesDoubt(config, metadata?.['subject_types_supported']);
  if (doubt !== null) new Logger('Console').warn(`[SECURITY] ${doubt}`);
}
