import { Aggregate } from './aggregate/aggregate.js';
import { GroupByDate } from './aggregate/group-by-date.js';
import { Distinct, GroupBy } from './aggregate/group-by.js';
import {
  DiscardChangeSet,
  ListChangeSets,
  RefreshChangeSet,
  ShowChangeSet,
  SubmitChangeSet,
  UndoChangeSet,
} from './changes/change-tools.js';
import { ListTools } from './discovery/list-tools.js';
import { ExportData } from './export/export-data.js';
import { CountObjects, ExplainQuery } from './read/count-and-explain.js';
import { QueryClass } from './read/query-class.js';
import { GetObject, GetObjects, GetSampleObjects } from './read/read-objects.js';
import { GetAllSchemas, GetSchema } from './schema/get-schemas.js';
import { AtlasAutocomplete, AtlasFacetedSearch, AtlasTextSearch } from './search/atlas-search.js';
import { FindSimilar } from './search/find-similar.js';
import { SemanticSearch } from './search/semantic-search.js';
import { CallMethod } from './write/call-method.js';
import { CreateClass, DeleteClass } from './write/change-classes.js';
import { CreateObject, DeleteObject, UpdateObject } from './write/change-objects.js';

/** Parley's own tools, in catalogue order. A new one is a class in the folder of its privilege, and a line here. */
export const BUILT_IN_TOOLS = [
  ListTools,
  GetAllSchemas,
  GetSchema,
  QueryClass,
  CountObjects,
  GetObject,
  GetObjects,
  GetSampleObjects,
  ExplainQuery,
  Aggregate,
  GroupBy,
  GroupByDate,
  Distinct,
  ExportData,
  CallMethod,
  AtlasTextSearch,
  AtlasAutocomplete,
  AtlasFacetedSearch,
  SemanticSearch,
  FindSimilar,
  CreateObject,
  UpdateObject,
  DeleteObject,
  CreateClass,
  DeleteClass,
  ListChangeSets,
  ShowChangeSet,
  DiscardChangeSet,
  RefreshChangeSet,
  SubmitChangeSet,
  UndoChangeSet,
] as const;
